"""`stepscope diagnose`, for people and for programs."""

import contextlib
import json
import sqlite3

import pytest

from profiler.cli import main
from profiler.run.writer import RunWriter
from tests.runs import CPU_STAGES_MS, make_run


@pytest.fixture
def run_file(tmp_path):
    return str(make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 200.0}, data_cpu=2.0,
                        host={"target.cpu": 1.1}))


def test_for_people(run_file, capsys):
    assert main(["diagnose", run_file]) == 0
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert text.startswith("Input-bound: 200.0 ms of 254.0 ms per step wait for data.\n")
    assert "data wait    200.0   79 %" in text and "step         254.0  100 %" in text
    assert "Try num_workers 0 → 4" in text and "predicts" in text and "train.py:57" in text
    assert f"stepscope verify {run_file}" in text
    assert "nan" not in text.lower() and "None" not in text


def test_for_programs(run_file, capsys):
    assert main(["diagnose", run_file, "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert err == "" and told["verdict"] == "input_bound" and told["source"] == run_file
    assert told["findings"][0]["remedy"] == {"setting": "num_workers", "from": 0, "to": 4}


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_hardly_any_steps(tmp_path, steps, capsys):
    assert main(["diagnose", str(make_run(tmp_path / "a.stepscope", steps=steps))]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Unknown: ") or steps == 5
    assert "None" not in text


def test_ranks(tmp_path, capsys):
    assert main(["diagnose", str(make_run(tmp_path / "a.stepscope", ranks=2))]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Rank", "verdict", "step", "data", "wait", "forward", "backward", "h2d"] in lines
    assert ["rank", "1", "input-bound", "52.3", "36.2", "6.0", "4.4", "4.1"] in lines


def test_a_file_that_is_no_run(tmp_path, capsys):
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    assert main(["diagnose", str(file)]) == 2
    assert "notes.txt" in capsys.readouterr().err


def test_a_hostile_run_cannot_write_to_the_terminal(run_file, capsys):
    with contextlib.closing(sqlite3.connect(run_file)) as db:
        (text,) = db.execute("SELECT properties FROM process WHERE properties LIKE '%train.py%'").fetchone()
        text = text.replace("train.py", "train\\u001b[2J\\n\\u009b.py")
        db.execute("UPDATE process SET properties = ?", (text,))
        db.commit()
    assert main(["diagnose", run_file]) == 0
    text = capsys.readouterr().out
    assert "at " in text and r"\x1b[2J\n\x9b.py" in text
    assert all(c.isprintable() or c in "\n\u00a0" for c in text)


def test_s09_what_of_the_run_is_missing_is_a_note(tmp_path, capsys):
    writer = RunWriter.create(tmp_path / "live.stepscope", {"recorder_pid": 2**22 + 1, "kind": "record"})
    writer.event(5, "recording_gap", "warning", "Nothing could be written for 9.0 s")
    writer.commit()
    (tmp_path / "copy.stepscope").write_bytes((tmp_path / "live.stepscope").read_bytes())
    assert main(["diagnose", str(tmp_path / "copy.stepscope"), "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(note.startswith("copy.stepscope-wal is not beside it") for note in notes), notes
    assert main(["diagnose", str(tmp_path / "live.stepscope"), "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert "Nothing could be written for 9.0 s" in notes and not any("-wal" in note for note in notes)
    writer.close()
