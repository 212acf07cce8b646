"""The runs of a confusion matrix: which there are, and that they go on after a stop, a crash and a hang."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler import catalog
from profiler.errors import RunError, TargetError, UsageError
from profiler.experiments import lines as json_lines
from profiler.experiments.matrix import run as running
from profiler.experiments.matrix import store
from profiler.experiments.matrix.cases import (
    CONTROL,
    FAULT,
    HEALTHY,
    NEEDS_GPU,
    TRACE,
    Case,
    cases,
    labelled,
)
from profiler.experiments.matrix.play import diagnosis, play
from profiler.experiments.matrix.run import Job, Listener, expected_s, jobs, run
from profiler.experiments.matrix.table import share
from profiler.experiments.program import Program
from tests.experiments.matrix_lines import CONTROL_CASE, fault_case, line
from tests.experiments.spooling import PROGRAM
from tests.record.running import environment, script


def test_every_fault_that_acts_on_a_cpu_is_a_case_beside_its_control() -> None:
    found, left_out = cases(catalog.faults(), Path("/runs"))
    named = {case.name: case for case in found if case.kind == FAULT}
    by_need = {fault.name: fault.needs for fault in catalog.faults()}
    assert set(named) == {name for name, needs in by_need.items() if needs != "cuda"}
    assert left_out == {name: NEEDS_GPU for name, needs in by_need.items() if needs == "cuda"}
    for name, case in named.items():
        fault = catalog.fault(name)
        assert case.verdicts == (fault.on_cpu,) and case.rule == fault.rule
        assert (case.trace_steps is not None) == fault.trace
    controls = [case for case in found if case.kind == CONTROL]
    assert len({case.name for case in controls}) == len(controls) < len(named)
    assert {case.verdicts for case in controls} == {(HEALTHY,)} and not any(case.rule for case in controls)
    assert any(case.trace_steps for case in controls)  # a rule that needs a trace must be quiet beside it too


def test_settings_of_a_fault_are_those_of_its_control_and_the_dial() -> None:
    [control, faulty], _ = cases([catalog.fault("few_workers")], Path("/runs"))
    assert control.program and faulty.program
    assert faulty.program.settings == {**control.program.settings, "few_workers": 1.0}
    assert control.program.settings["device"] == "cpu" and control.program.settings["workers"] == 3


def test_a_healthy_run_of_each_workload_is_a_control() -> None:
    told = catalog.workloads()
    alone, left_out = cases([], Path("/runs"), told)
    assert [case.program.workload for case in alone if case.program] == [w.name for w in told if w.healthy]
    assert len(alone) >= 4 and {case.kind for case in alone} == {CONTROL} and not left_out
    for case, info in zip(alone, (w for w in told if w.healthy)):
        assert case.program and case.program.settings == {"size": "smallest", "device": "cpu", **info.healthy}
    beside, _ = cases(catalog.faults(), Path("/runs"), told)
    without, _ = cases(catalog.faults(), Path("/runs"))
    assert len(beside) == len(without) + len(alone) - 1  # a fault's control is that of language_model


def test_ranks_run_under_torchrun() -> None:
    [control, faulty], _ = cases([catalog.fault("uneven_ranks")], Path("/runs"))
    for case in (control, faulty):
        assert case.program and case.program.workload is None
        words = " ".join(case.program.command)
        assert "torch.distributed.run --nproc-per-node=2" in words and "workload-run language_model" in words
        assert ("uneven_ranks=1" in words) == (case.kind == FAULT)
    assert "2 ranks" in control.name


def test_rounds_and_traces_once() -> None:
    trace = Case(TRACE, "a", ("input_bound",), trace=Path("a"))
    work = jobs([CONTROL_CASE, fault_case()], 2, [trace])
    assert [(job.case.kind, job.repeat) for job in work] == [
        (CONTROL, 1), (FAULT, 1), (CONTROL, 2), (FAULT, 2), (TRACE, 1)]


def test_time_is_told_from_what_was_measured() -> None:
    ran = Case(FAULT, "x", ("input_bound",), "x", Program(Path(), "language_model", {"a": 1}))
    other = Case(FAULT, "y", ("input_bound",), "y", Program(Path(), "language_model", {"a": 2}))
    trace = Case(TRACE, "a", ("input_bound",), trace=Path("a"))
    work = [Job(ran, 1), Job(other, 1), Job(trace, 1)]
    assert expected_s(work) == 2 * running.RUN_S + running.TRACE_S
    assert expected_s(work, [line(ran, seconds=4), line(ran, seconds=6)]) == 5 + 5 + running.TRACE_S


class Played:
    """In the place of `play`: no processes. `fails`: what it raises at which call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **fails: BaseException) -> None:
        self.names: list[tuple[str, int]] = []
        self.fails = fails
        monkeypatch.setattr(running, "play", self)

    def __call__(self, case: Case, repeat: int, folder: Path, **options: Any) -> dict[str, Any]:
        if error := self.fails.get(f"at{len(self.names)}"):
            raise error
        self.names.append((case.name, repeat))
        return line(case, case.verdicts[0], (case.rule,) if case.rule else (), repeat=repeat)


def test_a_stop_keeps_what_was_done_and_resume_goes_on(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = jobs([CONTROL_CASE, fault_case()], 3)
    store.begin(tmp_path, resume=False)
    Played(monkeypatch, at4=KeyboardInterrupt())
    cut = run(work, tmp_path, 3)
    assert cut.interrupted and len(cut.lines) == 4
    with (tmp_path / store.LINES).open("a") as file:
        file.write('{"case": {"kind": "fau')  # as when the machine goes down
    store.begin(tmp_path, resume=True)
    again, heard = Played(monkeypatch), []
    whole = run(work, tmp_path, 3, listener=Listener(run=heard.append))
    assert again.names == [("threads=1", 3), ("few_workers", 3)] and len(heard) == 2
    assert not whole.interrupted and len(whole.lines) == 6
    assert whole.to_json()["runs"]["right"] == share(6, 6)
    assert len(run(work, tmp_path, 3).lines) == 6 and len(again.names) == 2  # nothing left to do


@pytest.mark.parametrize("wrong", [{"seconds": "x"}, {"case": {}}, {"rules": None}, {"right": 1},
                                   {"others": None}])
def test_lines_of_other_kinds_are_made_anew(wrong: dict[str, Any], tmp_path: Path) -> None:
    store.begin(tmp_path, resume=False)
    store.add(tmp_path, line(fault_case(), "input_bound", (), repeat=1))
    store.add(tmp_path, {**line(fault_case(), "input_bound", (), repeat=2), **wrong})
    assert len(store.finished(tmp_path)) == 1


def test_results_of_other_code_or_settings_are_made_anew(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = jobs([fault_case()], 1)
    store.begin(tmp_path, resume=False)
    played = Played(monkeypatch)
    run(work, tmp_path, 1)
    run([Job(fault_case(verdict="host_bound"), 1)], tmp_path, 1)
    assert len(played.names) == 2
    monkeypatch.setattr(store, "code", lambda: "another")
    run(work, tmp_path, 1)
    assert len(played.names) == 3


def test_progress_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.begin(tmp_path, resume=False)
    Played(monkeypatch)
    shares: list[float] = []
    run(jobs([CONTROL_CASE, fault_case()], 3), tmp_path, 3,
        listener=Listener(tick=lambda done, total, text: shares.append(done / total)))
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] < 1


def test_a_folder_holds_one_matrix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no matrix"):
        store.begin(tmp_path, resume=True)
    store.begin(tmp_path / "new", resume=False)
    with pytest.raises(UsageError, match="--resume"):
        store.begin(tmp_path / "new", resume=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be used"):
        store.begin(tmp_path / "file", resume=False)


def test_json_lines_survive_what_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    json_lines.append(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"a": 2')
    json_lines.append(path, {"a": 3})
    assert json_lines.read(path) == ([{"a": 1}, {"a": 3}], 1)
    with pytest.raises(RunError):
        json_lines.read(tmp_path / "none")
    with pytest.raises(RunError):
        json_lines.append(tmp_path / "none" / "lines", {})


def write_truth(folder: Path, *rows: Any) -> Path:
    (folder / "truth.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder


def test_labelled_traces_are_found_by_their_truth(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    row = {"file": "a.json", "accept": ["input_bound", "sync_bound"], "verdict": "ambiguous"}
    known = [{"scenario": "no_sync", "speedup": 1.3}, {"scenario": "no_transfer", "speedup": 1.1},
             {"scenario": "overlapped_transfer", "speedup": 1.2}, {"scenario": "compute_half", "speedup": 2}]
    write_truth(tmp_path, row, {**row, "what_if": known}, {**row, "what_if": known, "what_if_scored": False})
    plain, told, unscored = labelled(tmp_path)
    assert plain == unscored == Case(
        TRACE, "a.json", ("input_bound", "sync_bound"), trace=tmp_path / "a.json")
    assert told.speedups == {"sync_bound": 1.3, "transfer_bound": 1.2}


@pytest.mark.parametrize("row", [{"file": "b.json", "accept": ["input_bound"]}, {"file": "a.json"}, [], 3,
                                 {"file": "a.json", "accept": []}, {"file": 3, "accept": ["x"]},
                                 {"file": "a.json", "accept": "input_bound"},
                                 {"file": "a.json", "accept": ["x"], "what_if": {"no_sync": 1.3}},
                                 {"file": "a.json", "accept": ["x"], "what_if": [{"speedup": 1}]}])
def test_a_truth_that_is_none_is_one_line(tmp_path: Path, row: Any) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(UsageError):
        labelled(write_truth(tmp_path, row))


def test_no_truth_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"truth\.jsonl"):
        labelled(tmp_path)


@pytest.fixture
def pretended(tmp_path: Path) -> Iterator[Any]:
    """Cases whose program pretends to train: 20 of 25 ms per step wait for data."""
    path = script(tmp_path, PROGRAM, "train.py")

    def case(verdict: str = "input_bound", **env: str) -> Case:
        program = Program(tmp_path, command=(sys.executable, str(path)),
                          environment=environment(tmp_path, **env))
        return Case(FAULT, "pretended", (verdict,), "input_bound", program)

    yield case


def test_one_run_recorded_and_diagnosed(tmp_path: Path, pretended: Any) -> None:
    ticks: list[float] = []
    good = play(pretended(), 1, tmp_path, tick=ticks.append)
    assert good["right"] and good["state"] == "told" and good["verdict"] == "input_bound", good
    assert good["rules"][0] == "input_bound" and good["versions"]["torch"] == "2.9.0"
    assert ticks and not list(tmp_path.glob("*.stepscope")) and not list(tmp_path.glob("*.err"))
    bad = play(pretended("host_bound"), 2, tmp_path, keep=True)
    assert not bad["right"] and "verdict input_bound" in bad["why"]
    assert [path.name for path in tmp_path.glob("*.stepscope")] == ["pretended-2.stepscope"]


def test_a_crash_and_a_hang_count_as_such(tmp_path: Path, pretended: Any) -> None:
    crashed = play(pretended(STATUS="3"), 1, tmp_path)
    assert (crashed["state"], crashed["verdict"], crashed["right"]) == ("crashed", None, False)
    assert "status 3" in crashed["why"] and "loss 0.25" in crashed["why"]
    stuck = play(pretended(PAUSE="5"), 2, tmp_path, limit_s=1.0)
    assert stuck["state"] == "stuck" and "did not end within 1 s" in stuck["why"]
    assert not list(tmp_path.glob("*.stepscope"))


def test_a_diagnosis_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("no trace")
    case = Case(TRACE, "a.json", ("input_bound",), trace=tmp_path / "a.json")
    failed = play(case, 1, tmp_path)
    assert failed["state"] == "crashed" and "status 2" in failed["why"] and "a.json" in failed["why"]
    assert (tmp_path / "a.json").exists()
    with pytest.raises(TargetError):
        diagnosis(tmp_path / "none.json")
