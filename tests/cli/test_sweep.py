from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.cli._common import plain
from profiler.cli._sweep import print_search, print_sweep
from profiler.cli.sweep import parse_bytes
from profiler.errors import UsageError
from profiler.experiments.sweep.journal import NAME, Journal, identity
from profiler.experiments.sweep.measure import MEMORY
from profiler.experiments.sweep.result import Sweep
from profiler.paths import own_command
from profiler.record.stop import carriers
from tests.experiments.spooling import PROGRAM
from tests.experiments.sweep.stand_in import GOOD, SUBJECT, Taker, bench
from tests.record.running import environment, script
from tests.waiting import until

TRAIN = (sys.executable, "train.py")


def sweep(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    script(folder, PROGRAM, "train.py")
    return subprocess.run(own_command("sweep", "-o", str(folder / "out"), *args), cwd=folder,
                          env=environment(folder, **env), capture_output=True, text=True, timeout=120)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_plain_scripts_loader_unedited(tmp_path: Path) -> None:
    done = sweep(tmp_path, "--grid", "num_workers=0,2,4", "--repeats", "2", "--json", "--", *TRAIN)
    answer = told(done)
    rates = {point["point"]["num_workers"]: point["rate"]["median"] for point in answer["points"]}
    assert rates == {0: pytest.approx(320, rel=0.01), 2: pytest.approx(8e3 / 15, rel=0.01),
                     4: pytest.approx(800, rel=0.01)}
    assert answer["best"]["label"] == "num_workers=4" and answer["unit"] == "samples/s"
    assert answer["best"]["in_code"] == "DataLoader(..., num_workers=4)"
    assert [point["given_up"] != "" for point in answer["points"]] == [True, False, False]
    lines = done.stderr.splitlines()
    assert lines[0].startswith("At most 6 runs of 3 points") and sum("run 1: " in line for line in lines) == 3
    kept = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert kept == answer
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["sweep.json", NAME]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_placeholders_and_points_that_crash_or_hang(tmp_path: Path) -> None:
    """None of them loses the others."""
    points = [{"status": 0, "steps": 60, "pause": 0}, {"status": 3, "steps": 2, "pause": 0},
              {"status": 0, "steps": 60, "pause": 30}]
    (tmp_path / "points").write_text("\n".join(map(json.dumps, points)))
    command = ["env", "STATUS={status}", "STEPS={steps}", "PAUSE={pause}", *TRAIN]
    done = sweep(tmp_path, "--list", "points", "--repeats", "2", "--limit", "3", "--json", "--", *command)
    answer = told(done)
    good, crashed, stuck = answer["points"]
    assert good["state"] == "best" and good["rate"]["runs"] == 2
    assert crashed["state"] == "failed" and "status 3" in crashed["given_up"] and len(crashed["runs"]) == 2
    assert stuck["state"] == "failed" and "did not end" in stuck["given_up"] and len(stuck["runs"]) == 1
    assert answer["best"]["command"].startswith("env STATUS=0 STEPS=60 PAUSE=0 ")


def test_interrupt_keeps_what_was_measured_and_resume_goes_on(tmp_path: Path) -> None:
    script(tmp_path, PROGRAM, "train.py")
    command = own_command("sweep", "-o", str(tmp_path / "out"), "--grid", "num_workers=0,2", "--json")
    mark, log = uuid.uuid4().hex, tmp_path / "err"
    with log.open("w") as err, (tmp_path / "stdout").open("w") as out:
        process = subprocess.Popen([*command, "--", *TRAIN], cwd=tmp_path, stderr=err, stdout=out,
                                   env=environment(tmp_path, STEPSCOPE_TEST_MARK=mark))
        until(lambda: log.read_text().count(", run 1: ") == 2, 60)
        (tmp_path / "slow").touch()  # from now on a recording takes minutes
        until(lambda: len(carriers("STEPSCOPE_TEST_MARK", mark)) > 2, 30)  # sweep, a recorder, its target
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, log.read_text()
    until(lambda: not carriers("STEPSCOPE_TEST_MARK", mark))
    answer = json.loads((tmp_path / "stdout").read_text())
    measured = sum(len(point["runs"]) for point in answer["points"])
    assert answer["interrupted"] and 2 <= measured <= 4 and answer["best"]
    assert f"--resume -o {tmp_path / 'out'}" in log.read_text()
    (tmp_path / "slow").unlink()
    with (tmp_path / "out" / NAME).open("a") as file:
        file.write('{"group": "", "poi')  # a write that a crash tore
    again = subprocess.run([*command, "--resume", "--", *TRAIN], cwd=tmp_path, env=environment(tmp_path),
                           capture_output=True, text=True, timeout=120)
    final = told(again)
    assert f"done already: {measured}" in again.stderr
    counts = Counter(point["label"] for point in final["points"] for _ in point["runs"])
    assert counts["num_workers=2"] == 3 and not final["interrupted"]
    assert any("damaged" in note for note in final["notes"])
    other = subprocess.run([*command, "--resume", "--steps", "20", "--", *TRAIN], cwd=tmp_path,
                           env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert other.returncode == 2 and "another number of steps" in other.stderr


def test_a_search_by_itself(tmp_path: Path) -> None:
    done = sweep(tmp_path, "--auto", "--json", "--", *TRAIN)
    answer = told(done)
    assert answer["diagnoses"][0]["verdict"] == "input_bound"
    kept = [change for change in answer["changes"] if change["kept"]]
    assert kept[0]["key"] == "num_workers" and kept[0]["from"] == 0
    assert answer["best"]["point"]["num_workers"] == kept[-1]["to"] >= 2
    assert answer["best"]["gain"]["median"] > 1.5
    assert "input_bound" in done.stderr and "\u2192" in done.stderr


def test_curve_and_map_in_print(capsys: pytest.CaptureFixture[str]) -> None:
    points = [{"a": a, "b": b} for a in ("0", "2") for b in ("x", "y")]
    rates = {0: [50.0, 51.0, 49.0], 1: [100.0, 101.0, 99.0], 2: [100.5, 99.5, 101.5]}
    runs = {identity(points[k]): [replace(GOOD, rate=rate) for rate in own] for k, own in rates.items()}
    runs[identity(points[3])] = [replace(GOOD, failure=MEMORY, why="no room", rate=None, step_ms=None)]
    skipped = (({"a": "4", "b": "x"}, "it cannot be"),)
    print_sweep(plain(Sweep(SUBJECT, runs, tuple(points), skipped).to_json()))
    text = capsys.readouterr().out.replace("\u00a0", " ")
    lines = text.splitlines()
    assert lines[1].split() == ["a", "\\", "b", "x", "y"]
    assert "50.0 [49.0, 51.0]" in lines[2]
    assert lines[3].split("  ")[-1].strip() == "failed" and "*" in lines[3]
    assert "Best: a=2 b=x, 100" in text and "No difference shown from it: a=0 b=y" in text
    assert "0.50 \u00d7" in text and "slower" in text
    assert "  python train.py 2 x" in text
    assert "Left out: a=2 b=y, run 1: out of memory: no room." in text
    assert "Skipped: a=4 b=x: it cannot be." in text


def shown(capsys: pytest.CaptureFixture[str], rates: dict[Any, list[float]], *keys: str, **more: Any) -> str:
    """A sweep over `keys`, whose points are tuples of values, in print."""
    points = {values: dict(zip(keys, values)) for values in rates}
    runs = {identity(points[v]): [replace(GOOD, rate=rate) for rate in own] for v, own in rates.items()}
    subject = replace(SUBJECT, keys=keys)
    print_sweep(plain(Sweep(subject, runs, tuple(points.values()), **more).to_json()))
    return capsys.readouterr().out.replace("\u00a0", " ")


def test_a_curve_is_in_order_of_its_values_and_its_bars_grow_with_the_rates(
        capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, {(10,): [100.0, 90.0, 110.0], (2,): [50.0, 50.0, 50.0], (0,): [20.0]}, "a")
    rows = [line.split() for line in text.splitlines()[1:4]]
    assert [row[0] for row in rows] == ["0", "2", "10"]
    bars = [next(cell for cell in row if cell.endswith(("|", "-")) and "|" in cell) for row in rows]
    assert [len(bar) for bar in bars] == sorted(len(bar) for bar in bars) and bars[2].endswith("|--")


def test_a_map_that_would_be_empty_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    sparse = {(str(k), str(k)): [100.0] for k in range(6)}
    assert "shades" not in shown(capsys, sparse, "a", "b")
    full = {(str(j), str(k)): [100.0] for j in range(2) for k in range(2)}
    assert "shades" in shown(capsys, full, "a", "b")


def test_a_search_in_print(capsys: pytest.CaptureFixture[str]) -> None:
    ratio = {"median": 1.9, "low": 1.8, "high": 2.0, "runs": 3, "coverage": 0.75}
    change = {"key": "num_workers", "from": 0, "to": 2, "ratio": ratio, "outcome": "improvement",
              "kept": True, "why": ""}
    best = {"label": "num_workers=2", "rate": ratio, "gain": ratio, "command": "stepscope record -- x",
            "in_code": "DataLoader(..., num_workers=2)"}
    told = {"diagnoses": [{"verdict": "input_bound", "also": [], "reason": "so"}], "changes": [change],
            "best": best, "unit": "samples/s", "notes": ["one"]}
    print_search(told)
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert "num_workers 0 \u2192 2: 1.90 \u00d7 [1.80, 2.00], faster, kept" in text
    assert "Against the start: 1.90 \u00d7" in text and "DataLoader(..., num_workers=2)" in text
    told["best"] = {**best, "gain": None, "rate": None}  # interrupted
    print_search(told)
    assert "stays as it is" not in capsys.readouterr().out
    print_search({**told, "changes": [{**change, "kept": False}]})
    said = capsys.readouterr().out
    assert "stays as it is" in said and "Use this setting" not in said


@pytest.mark.parametrize(("given", "expected"), [("1000", 1e3), ("16G", 16e9), ("8GiB", 8 * 2**30),
                                                 ("1.5 MB", 1.5e6), ("2k", 2e3)])
def test_sizes(given: str, expected: float) -> None:
    assert parse_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "G", "-1", "1e9", "0", "8 apples", "nan"])
def test_no_sizes(given: str) -> None:
    with pytest.raises(UsageError):
        parse_bytes(given)


WORK = ["--workload", "input_starved"]
GRID = [*WORK, "--grid", "workers=1"]
LOADER = ["--grid", "num_workers=1"]
BAD: list[list[str]] = [
    [], ["--grid", "a=1"], WORK, ["--workload", "nothing", "--grid", "a=1"], [*WORK, "--grid", "worker=1"],
    [*WORK, "--grid", "steps=1"], [*WORK, "--grid", "workers=x"], [*WORK, "--grid", "workers="],
    [*WORK, "--list", "there is none"], [*WORK, "--random", "3"], [*WORK, "--range", "workers=0:3"],
    [*GRID, "--random", "0"], [*WORK, "--auto", "--random", "2"], [*GRID, "--grid", "workers=2"],
    [*GRID, "--max-memory", "much"], [*GRID, "--repeats", "0"], [*GRID, "--steps", "1"],
    [*GRID, "--limit", "nan"], [*GRID, "--resume"], [*GRID, "--", "python"],
    ["--grid", "lr=1", "--", sys.executable], [*LOADER, "--", sys.executable, "{lr}"],
    [*LOADER, "--set", "a=1", "--", sys.executable], [*LOADER, "--", "no-such"],
]


@pytest.mark.parametrize("args", BAD, ids=" ".join)
def test_unusable_arguments_are_one_line_before_anything_runs(
        args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_RUNS", str(tmp_path / "runs"))
    assert main(["sweep", *args]) == 2
    out, err = capsys.readouterr()
    assert len(err.strip().splitlines()) == 1 and not out
    assert not (tmp_path / "runs").exists()


def test_optuna_is_asked_for_only_where_it_is_wanted(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    args = ["--workload", "input_starved", "--random", "2", "--range", "workers=0:2", "--sampler", "tpe"]
    assert main(["sweep", "-o", str(tmp_path / "out"), *args]) == 2
    assert "pip install optuna" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="optuna is not installed")
def test_the_sampler_finds_a_peak_and_draws_the_same_again(tmp_path: Path) -> None:
    from profiler.experiments.sweep.points import Range
    from profiler.experiments.sweep.tpe import explore

    def peak(point: Any, number: int) -> float:
        return 100.0 / (1 + abs(float(point["a"]) - 30) + (point["b"] == "y"))

    def explored(journal: Journal) -> tuple[list[Any], Taker]:
        taker, points = Taker(peak), []
        explore(SUBJECT, {"b": ["x", "y"]}, {"a": Range(0, 100, True, False)}, 30,
                bench(tmp_path, taker, journal=journal), points, [])
        return points, taker

    journal = Journal()
    points, taker = explored(journal)
    best = max(points, key=lambda point: peak(point, 0))
    assert abs(float(best["a"]) - 30) <= 5 and len(taker.order) == len(points)
    again, none = explored(journal)
    assert again == points and none.order == []


@pytest.mark.slow
def test_two_points_of_a_real_workload(tmp_path: Path) -> None:
    done = subprocess.run(
        own_command("sweep", "--workload", "input_starved", "--set", "size=smallest", "--grid", "workers=0,2",
                    "--steps", "60", "--repeats", "1", "--json", "-o", str(tmp_path / "out")),
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=180)
    answer = told(done)
    assert [len(point["runs"]) for point in answer["points"]] == [1, 1]
    for point in answer["points"]:  # on a busy machine one may stall, which is told
        assert point["left_out"] or (point["rate"]["median"] > 0 and point["memory_bytes"] > 1e7)
    assert "workers=" in answer["best"]["label"] and answer["best"]["command"].startswith("stepscope record")
    assert any("no noise band" in note for note in answer["notes"])
