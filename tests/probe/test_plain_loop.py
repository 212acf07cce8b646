"""A user's loop with no change: the steps are the script's, and the stages what its timers say."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

from tests.probe.reading import EPOCH_FIRST, EVALUATION, Ran, run


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    ran = run(tmp_path_factory.mktemp("plain"), "plain.py")
    assert ran.returncode == 0, ran.stderr
    return ran


def test_as_many_steps_as_the_script_made(plain: Ran) -> None:
    assert len(plain.only.training) == len(plain.said["steps"]) == 24
    assert len(plain.only.evaluation) == 8


def test_indexes_count_up(plain: Ran) -> None:
    assert [s["index"] for s in plain.only.steps] == list(range(32))


@pytest.mark.parametrize("stage", ["data", "forward", "backward", "optimizer"])
def test_stage_agrees_with_the_scripts_timer(plain: Ran, stage: str) -> None:
    theirs = [s[stage] for s in plain.said["steps"]]
    # step by step: a machine that others load takes both clocks along
    apart = median(abs(s[stage] - t) for s, t in zip(plain.only.training, theirs, strict=True))
    assert apart <= 0.05 * median(theirs)


def test_step_agrees_with_the_scripts_timer(plain: Ran) -> None:
    theirs = [s["step"] for s in plain.said["steps"]]
    apart = median(abs(s["t1"] - s["t0"] - t) for s, t in zip(plain.only.training, theirs, strict=True))
    assert apart <= 0.05 * median(theirs)


def test_stages_fit_into_the_step(plain: Ran) -> None:
    for s in plain.only.steps:
        stages = s["data"] + s["h2d"] + s["forward"] + s["backward"] + s["optimizer"]
        assert 0 < stages <= s["t1"] - s["t0"]


def test_first_step_of_each_epoch_is_marked(plain: Ran) -> None:
    flags = [s["flags"] for s in plain.only.steps]
    assert [i for i, f in enumerate(flags) if f & EPOCH_FIRST] == [0, 12, 16, 28]
    assert [i for i, f in enumerate(flags) if f & EVALUATION] == [12, 13, 14, 15, 28, 29, 30, 31]


def test_samples_and_optimizer_calls(plain: Ran) -> None:
    assert {s["samples"] for s in plain.only.steps} == {2}
    assert {s["optimizer_calls"] for s in plain.only.training} == {1}
    assert {s["optimizer_calls"] for s in plain.only.evaluation} == {0}


def test_loaders_are_told(plain: Ran) -> None:
    last = {(loader["train"], loader["dataset"], loader["batch_size"]) for loader in plain.only.loaders}
    assert (True, "Slow", 2) in last
    assert (False, "Slow", 2) in last


def test_first_and_last_record(plain: Ran) -> None:
    process = plain.only
    assert process.records[0][0] == "hello"
    assert process.records[0][1]["pid"] == process.pid
    assert process.records[0][1]["argv"][0].endswith("plain.py")
    assert process.records[-1] == ["bye", {"steps": 32}]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count by thread")
def test_the_loops_thread_is_read_now_and_then(plain: Ran) -> None:
    """Time, kernel time, time without a core, page faults, switches, threads: sums never fall."""
    read = plain.only.of("thread")
    assert 3 <= len(read) <= len(plain.only.steps) + 2
    for before, after in zip(read, read[1:], strict=False):
        assert after[0] > before[0]
        assert all(a >= b for a, b in zip(after[1:5], before[1:5], strict=True) if a is not None)
    assert {row[5] for row in read} == {1}  # OMP_NUM_THREADS


def test_sites_are_lines_of_the_script(plain: Ran) -> None:
    sites = dict(plain.only.of("site"))
    assert set(sites) == {"loader", "forward", "backward", "optimizer"}
    for site in sites.values():
        name, line = site.rsplit(":", 1)
        assert Path(name).name in ("common.py", "plain.py")
        assert int(line) > 0
