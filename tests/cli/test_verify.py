from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.paths import own_command
from profiler.record.stop import carriers
from profiler.run.reader import Run
from tests.experiments.spooling import PROGRAM, recorded
from tests.record.running import environment, script
from tests.runs import CPU_STAGES_MS, make_run
from tests.waiting import until


def verify(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(own_command("verify", str(folder / "run.stepscope"), *args), cwd=folder.parent,
                          env=environment(folder, **env), capture_output=True, text=True, timeout=120)


def stored(path: Path) -> list[dict[str, Any]]:
    with Run.open(path) as run:
        return run.results("experiment")


def test_runs_pairs_prints_and_stores(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    done = verify(tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {"finding", "remedy", "prediction", "ratio", "pairs", "outcome", "score", "step_ms", "left_out",
            "notes"} <= told.keys()
    workers = told["remedy"]["to"]
    assert told["remedy"] == {"setting": "num_workers", "from": 0, "to": workers}
    assert told["outcome"] == "improvement"
    assert told["ratio"]["median"] == pytest.approx(25 / (20 / workers + 5), rel=0.01)
    assert told["loss"]["state"] == "agrees"
    assert len(told["pairs"]) == 3
    assert stored(path) == [told]
    assert done.stderr.count("pair ") >= 3 and "about" in done.stderr.splitlines()[0]
    least = told["expected_s"]["least"]
    assert least == pytest.approx(3 * (told["expected_s"]["a"] + told["expected_s"]["b"]))
    assert f"about {max(1, round(least))}\u00a0s" in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].startswith("It starts ") and str(tmp_path) in done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []  # the children's run files are gone


def test_kept_recordings_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    recorded(tmp_path)
    (tmp_path / "kept").mkdir()
    make_run(tmp_path / "kept" / "1a.stepscope")
    done = verify(tmp_path, "--try", "num_workers=2", "--keep", str(tmp_path / "kept"))
    assert done.returncode == 2 and "exists already" in done.stderr


def test_human_output_and_kept_recordings(tmp_path: Path) -> None:
    recorded(tmp_path)
    done = verify(tmp_path, "input_bound", "--pairs", "3", "--keep", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr
    assert "predicted" in done.stdout and "measured" in done.stdout
    assert "improvement" in done.stdout and "The loss agrees" in done.stdout
    names = sorted(p.stem for p in (tmp_path / "kept").glob("*.stepscope"))
    assert names == ["1a", "1b", "2a", "2b", "3a", "3b"]


def test_a_program_that_ignores_the_setting(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    done = verify(tmp_path, "--try", "num_workers=2", DEAF="1")
    assert done.returncode == 2
    assert "did not take num_workers" in done.stderr
    assert stored(path) == []


def test_a_program_that_fails_now(tmp_path: Path) -> None:
    recorded(tmp_path)
    done = verify(tmp_path, STATUS="3", STEPS="2")
    assert done.returncode == 2
    assert "fails as it was recorded: it ended with status 3 after 2 steps" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 3


def test_a_program_that_the_remedy_crashes(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    done = verify(tmp_path, BREAKS="1")
    assert done.returncode == 0, done.stderr
    assert "fails with the remedy" in done.stdout
    assert "it ran out of memory and ended with status 1; it said: torch.OutOfMemoryError" in done.stdout
    assert stored(path)[0]["outcome"] == "fails with the remedy"
    assert done.stderr.count("left out: B: it ran out of memory") == 2


def test_a_useless_change_shows_no_difference(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    done = verify(tmp_path, "--try", "num_workers=0,0", "--pairs", "3", "--json")
    told = json.loads(done.stdout)
    assert told["outcome"] == "no difference shown"
    assert told["ratio"]["median"] == pytest.approx(1.0, abs=0.01)
    assert told["prediction"] is None and told["score"] == "not scored" and told["finding"] is None
    assert stored(path) == [told]


def test_a_value_that_the_run_had_is_no_change(tmp_path: Path) -> None:
    recorded(tmp_path)
    done = verify(tmp_path, "--try", "num_workers=0")
    assert done.returncode == 2 and "num_workers is 0 already" in done.stderr


def test_a_variable_of_the_environment(tmp_path: Path) -> None:
    recorded(tmp_path)
    done = verify(tmp_path, "--try", "LOSS=0.5", "--pairs", "3", "--json", LOSS="0.25")
    told = json.loads(done.stdout)
    assert told["remedy"] == {"setting": "LOSS", "from": "0.25", "to": "0.5"}
    assert told["loss"]["state"] == "differs"
    assert (told["loss"]["a"], told["loss"]["b"]) == (0.25, 0.5)


def test_a_command_with_a_placeholder(tmp_path: Path) -> None:
    program = script(tmp_path, PROGRAM, "train.py")
    run = tmp_path / "first.stepscope"
    done = subprocess.run(
        own_command("verify", "--json", "--pairs", "3", "--try", "note=one,two", "-o", str(run), "--",
                    sys.executable, str(program), "--note={note}", "{{note}}"),
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["remedy"] == {"setting": "note", "from": "one", "to": "two"}
    assert told["outcome"] == "no difference shown" and len(told["pairs"]) == 3
    assert stored(run) == [told]
    with Run.open(run) as opened:
        assert opened.meta["command"][-2:] == ["--note=one", "{note}"]
    first, *_ = done.stderr.splitlines()
    assert first.startswith("First 60 steps of") and "at most 5\u00a0min:" in first


def test_a_command_that_fails_at_once(tmp_path: Path) -> None:
    program = script(tmp_path, PROGRAM, "train.py")
    done = subprocess.run(
        own_command("verify", "--try", "num_workers=2", "-o", str(tmp_path / "first.stepscope"), "--",
                    sys.executable, str(program)),
        cwd=tmp_path, env=environment(tmp_path, STATUS="3", STEPS="2"), capture_output=True, text=True,
        timeout=60)
    assert done.returncode == 2
    assert "the command fails as it is: it ended with status 3 after 2 steps" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_stores_and_ends_the_children(tmp_path: Path, number: signal.Signals) -> None:
    path = recorded(tmp_path)
    mark, log = uuid.uuid4().hex, tmp_path / "err"
    with log.open("w") as err:
        process = subprocess.Popen(
            own_command("verify", str(path)), cwd=tmp_path, stderr=err, stdout=subprocess.DEVNULL,
            env=environment(tmp_path, STEPSCOPE_TEST_MARK=mark))
        until(lambda: "pair 1" in log.read_text(), 60)
        (tmp_path / "slow").touch()  # from now on a recording takes minutes
        until(lambda: len(carriers("STEPSCOPE_TEST_MARK", mark)) > 2, 30)  # verify, a recorder, its target
        process.send_signal(number)
        assert process.wait(timeout=60) == 130, log.read_text()
    until(lambda: not carriers("STEPSCOPE_TEST_MARK", mark))
    told = stored(path)
    assert len(told) == 1 and told[0]["interrupted"]
    assert 1 <= len(told[0]["pairs"]) <= 2


def test_death_of_verify_ends_the_children(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        own_command("verify", str(path)), cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env=environment(tmp_path, STEPSCOPE_TEST_MARK=mark, PAUSE="5"))
    until(lambda: len(carriers("STEPSCOPE_TEST_MARK", mark)) > 2, 30)
    process.kill()
    process.wait()
    until(lambda: not carriers("STEPSCOPE_TEST_MARK", mark))


@pytest.mark.parametrize("args", [["--pairs", "2"], ["--pairs", "9" * 400], ["--steps", "3"],
                                  ["--steps", "9" * 400], ["9"], ["nothing"], ["--try", "num_workers"],
                                  ["--try", "lr=1,2"], ["1", "--try", "num_workers=2"], ["1", "2"],
                                  ["--scoreboard", "--try", "num_workers=2"], ["-o", "x"],
                                  ["--try", "num_workers=2", "--", "python"]])
def test_unusable_arguments(tmp_path: Path, args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = make_run(tmp_path / "run.stepscope", meta={"command": [sys.executable], "cwd": str(tmp_path)})
    assert main(["verify", str(path), *args]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("args", [
    [], ["--", "python", "x.py"], ["--try", "a=1,2", "--", "python", "{b}"],
    ["--try", "a=1,2", "--", "python", "{a}", "{b}"], ["--try", "a=1", "--", "python", "{a}"],
    ["--scoreboard", "no/such/folder"], ["--scoreboard", "--", "python"]])
def test_unusable_arguments_without_a_run(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *args]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_nothing_to_test_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_run(tmp_path / "run.stepscope", stages=CPU_STAGES_MS)
    assert main(["verify", str(path)]) == 2
    assert "compute_bound" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "no.stepscope")]) == 2


def test_scoreboard(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_RUNS", str(tmp_path / "runs"))
    assert main(["verify", "--scoreboard"]) == 0  # of no run at all
    assert capsys.readouterr().out.startswith("0 experiments in 0 runs")
    recorded(tmp_path)
    assert verify(tmp_path, "--pairs", "3").returncode == 0
    (tmp_path / "runs").mkdir()
    (tmp_path / "run.stepscope").rename(tmp_path / "runs" / "one.stepscope")
    (tmp_path / "runs" / "torn.stepscope").write_bytes(b"SQLite format 3\0 and no more")
    assert main(["verify", "--scoreboard"]) == 0
    out = capsys.readouterr().out
    assert "one" in out and "num_workers 0 \u2192 4" in out and "2.50" in out
    assert "1 experiment in 1 run" in out and "Skipped: 1 file" in out
    assert main(["verify", "--scoreboard", "--json", str(tmp_path / "runs" / "one.stepscope")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["skipped"] == 0 and len(told["experiments"]) == 1
    assert sum(told[word] for word in ("hit", "miss", "vague", "not_scored")) == 1
