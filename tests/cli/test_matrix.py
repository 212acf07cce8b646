"""`stepscope matrix`: what it prints, keeps and refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.cli import matrix as command
from profiler.experiments.matrix import run as running
from profiler.experiments.matrix import store
from profiler.paths import own_command
from profiler.record.stop import carriers
from tests.experiments.matrix_lines import line
from tests.record.running import environment
from tests.rules.trace.loops import loop
from tests.waiting import until


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No processes: every case brings what it states. Returns the names of those that were played."""
    names: list[str] = []

    def play(case: Any, repeat: int, folder: Path, **options: Any) -> dict[str, Any]:
        names.append(f"{case.kind} {case.name} {repeat}")
        return line(case, case.verdicts[0], (case.rule,) if case.rule else (), repeat=repeat)

    monkeypatch.setattr(running, "play", play)
    return names


def test_every_fault_is_run_or_left_out_with_its_reason(
        tmp_path: Path, played: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "--repeats", "2", "-o", str(tmp_path / "m"), "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["runs"]["right"]["count"] == len(played) == told["runs"]["right"]["hits"] > 20
    assert {item["fault"] for item in told["left_out"]} >= {"large_copies", "sync_every_step"}
    assert all("GPU" in item["why"] for item in told["left_out"])
    assert err.splitlines()[0].startswith(f"{len(played)} runs, about ")
    assert f"kept in {tmp_path / 'm'}" in err.splitlines()[0]
    assert len([said for said in err.splitlines() if ": right" in said]) == len(played)


@pytest.mark.parametrize(("load", "told"), [(0.2, False), (1.5, True)])
def test_a_machine_that_is_not_quiet_is_told(load: float, told: bool, tmp_path: Path, played: list[str],
                                             monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "_load", lambda: load)
    assert main(["matrix", "--only", "gc_pauses", "--repeats", "1", "-o", str(tmp_path / "m")]) == 0
    assert ("not quiet" in capsys.readouterr().err) == told


def test_only_some_and_the_same_again(tmp_path: Path, played: list[str],
                                      capsys: pytest.CaptureFixture[str]) -> None:
    words = ["matrix", "--only", "gc_pauses", "slow_decode", "--repeats", "1", "-o", str(tmp_path)]
    assert main(words) == 0
    assert played[1:] == ["fault gc_pauses 1", "fault slow_decode 1"]
    assert len(played) == 3 and played[0].startswith("control")  # which they share
    assert main(words) == 2 and "--resume" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0 and len(played) == 3
    out, err = capsys.readouterr()
    assert "3 are done already" in err and "3 of 3 runs" in out


def test_resume_takes_the_newest(played: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STEPSCOPE_RUNS", str(tmp_path))
    words = ["matrix", "--only", "gc_pauses", "--repeats", "1"]
    assert main([*words, "--resume"]) == 2 and "no matrix" in capsys.readouterr().err
    assert main(words) == 0
    assert main([*words, "--resume"]) == 0 and len(played) == 2
    assert len(list(tmp_path.glob(f"matrix-*/{store.LINES}"))) == 1


def test_a_saved_result_is_shown(tmp_path: Path, played: list[str],
                                 capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "matrix.json"
    words = ["--only", "few_workers", "--repeats", "1", "-o", str(tmp_path / "m"), "--save", str(file)]
    assert main(["matrix", *words]) == 0
    printed = capsys.readouterr().out
    assert "| `few_workers` " in printed and "| rule " in printed
    assert main(["matrix", "--show", str(file)]) == 0 and capsys.readouterr().out == printed
    assert main(["matrix", "--show", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(file.read_text("utf-8"))
    told["runs"]["cases"][0]["name"] = "\x1b[31mred"  # a file may come from anybody
    file.write_text(json.dumps(told), encoding="utf-8")
    assert main(["matrix", "--show", str(file)]) == 0 and "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [
    ["--only", "no_such_fault"], ["--only", "large_copies"], ["--repeats", "-1"], ["--repeats", "0"],
    ["--repeats", "9" * 400], ["--traces", "nowhere"], ["--show", "nowhere.json"],
    ["--save", "nowhere/matrix.json"], ["--only"]])
def test_unusable_arguments_are_one_line(words: list[str], tmp_path: Path, played: list[str],
                                         capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "-o", str(tmp_path / "m"), *words]) == 2
    out, err = capsys.readouterr()
    assert not out and len(err.strip().splitlines()) == 1 and not played
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("text", ["", "3", "{}", '{"runs": 1}', "[]", '{"machine": {"cores_usable": 1}}'])
def test_a_file_that_holds_no_result(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text(text)
    assert main(["matrix", "--show", str(tmp_path / "x.json")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_runs_need_torch_and_traces_do_not(tmp_path: Path, played: list[str], monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert main(["matrix", "-o", str(tmp_path / "m")]) == 2
    assert "need torch" in capsys.readouterr().err and not played


def test_labelled_traces_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace that waits for its input, with a right and a wrong truth."""
    loop(wait_us=4000).save(tmp_path / "a.json")
    rows = [{"file": "a.json", "accept": [verdict]} for verdict in ("input_bound", "sync_bound")]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["--repeats", "0", "--traces", str(tmp_path), "-o", str(tmp_path / "m"), "--json"]
    assert main(["matrix", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] is None and told["left_out"] == []
    assert (told["traces"]["right"]["hits"], told["traces"]["right"]["count"]) == (1, 2)
    assert {item["found"] for item in told["traces"]["confusion"]} == {"input_bound"}


def test_ctrl_c_ends_the_recording_and_keeps_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    mark, log, folder = uuid.uuid4().hex, tmp_path / "err", tmp_path / "m"
    with log.open("w") as err:
        process = subprocess.Popen(
            own_command("matrix", "--only", "few_workers", "--repeats", "1", "-o", str(folder), "--save",
                        str(tmp_path / "x.json")),
            cwd=tmp_path, stderr=err, stdout=subprocess.PIPE, text=True,
            env=environment(tmp_path, STEPSCOPE_TEST_MARK=mark))
        until(lambda: len(carriers("STEPSCOPE_TEST_MARK", mark)) > 2, 30)  # it, a recorder, its target
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, log.read_text()
    assert "Interrupted" in out and "--resume" in log.read_text()
    until(lambda: not carriers("STEPSCOPE_TEST_MARK", mark), 30)
    assert [path.name for path in folder.iterdir()] == [store.LINES]
    assert not (tmp_path / "x.json").exists() and "not written" in log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["few_workers", "tiny_kernels", "uneven_ranks"])
def test_a_fault_and_its_control_are_told_apart(name: str, tmp_path: Path) -> None:
    """Plain, with a trace window, and with two ranks: all runs are diagnosed, the fault's as stated."""
    pytest.importorskip("torch")
    done = subprocess.run(
        own_command("matrix", "--only", name, "--repeats", "1", "-o", str(tmp_path / "m"), "--json"),
        env=environment(tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert (runs["right"]["count"], runs["crashed"], runs["stuck"]) == (2, 0, 0), done.stderr
    assert [case["right"] for case in runs["cases"] if case["kind"] == "fault"] == [1], done.stderr
