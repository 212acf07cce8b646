"""What else is read back, damaged: spools of a hostile target, journals to resume, control lines, settings.

    python -m tests.record.fuzz --count 10000 [--minutes M] [--seed 0] [--workers 2] [--keep DIR]
    python -m tests.record.fuzz --case 123 --write DIR

How they are run: tests/fuzzing.py. Prints a summary and every failure; the exit status is 1 at any.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from PySide6.QtCore import QRect

from app.settings import Settings, on_screen
from profiler.errors import ProfilerError
from profiler.experiments.matrix import store
from profiler.experiments.sweep import journal
from profiler.record.control import COMMANDS, Control
from profiler.run.writer import RunWriter
from profiler.sources.spool import SpoolSource
from profiler.sources.tree import TargetTree
from tests import fuzzing
from tests.importers.damage import TEXT
from tests.run.mutations import JSON
from tests.run.planned import read_all
from tests.sources.spooling import Clock

PROGRAM = {"command": ["python", "train.py"], "cwd": "/tmp"}
STEP = [3, 10**15, 10**15 + 10**7, 1000, 200, 300, 400, 50, 7, 8, 32, 1, 2, 9, 0]  # as a probe has them
SPOOL: tuple[Any, ...] = (
    ["hello", {"version": 1, "pid": 70, "ppid": 1, "t": 10**15, "python": "3.11.2", "argv": ["python", "a b"],
               "rank": 0, "world": None}],
    ["torch", {"version": "2.14", "cuda": "12.8", "devices": [{"uuid": "GPU-1", "name": "H200"}]}],
    ["loader", {"num_workers": 0, "batch_size": 64}], ["site", "loader", ["train.py:3"]], ["step", *STEP],
    ["device", 3, {"forward": 100}, {"forward": 5}], ["memory", 10**15, 0, 1, 2, 3], ["dropped", 3],
    ["event", 10**15, "mark", "info", "text", {}], ["trace", 10**15, 10**15 + 5, "1.json", {"steps": [1, 2]}],
    ["bye", 10**15])
SWEEP: tuple[Any, ...] = (
    {"note": "program", "value": PROGRAM}, {"note": "order", "value": [1, 2]},
    {"group": "grid", "point": {"batch_size": 8}, "step_ms": 10.0, "rate": 100.0, "stages_ms": {"data": 1.0},
     "memory": 1e9, "wall_s": 2.0})
MATRIX = {"case": {"kind": "fault", "name": "x", "settings": {}, "command": []}, "repeat": 0, "state": "done",
          "verdict": "input_bound", "also": [], "rules": [], "right": True, "why": "", "versions": {},
          "seconds": 1.0, "others": 0.0}
INI = (b"[General]\ntheme=dark\nrecent=/tmp/a.stepscope, /tmp/b.stepscope\ngeometry=@Rect(0 0 800 600)\n"
       b"launch\\splitter=@ByteArray(\\0\\0\\0\\xff)\nmaximized=true\n")


def _lines(rows: tuple[Any, ...], rng: random.Random) -> bytes:
    """Rows as JSON lines; something in some of them is another value."""
    changed = []
    for _ in range(rng.choice((1, 5, 40))):
        row = json.loads(json.dumps(rng.choice(rows)))
        for _ in range(rng.choice((0, 0, 1, 4))):
            at: Any = row
            while isinstance(at, (dict, list)) and at:
                key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
                if rng.random() < 0.6 or not isinstance(at[key], (dict, list)):
                    at[key] = copy.deepcopy(rng.choice(JSON))
                    break
                at = at[key]
        changed.append(json.dumps(row).encode())
    return b"\n".join([*changed, b""])


def case(source: str, number: int, seed: int) -> tuple[str, str, dict[str, bytes]]:
    """Case `number`: what it is, the file that is looked at, and all files."""
    rng = random.Random(f"{seed}/{number}")
    kind = rng.choice(("spool", "sweep", "matrix", "control", "settings"))
    if kind == "spool":
        name, data = "70.0.spool", _lines(SPOOL, rng)
    elif kind == "sweep":
        name, data = journal.NAME, _lines(SWEEP, rng)
    elif kind == "matrix":
        name, data = store.LINES, _lines(({**MATRIX, "code": source},), rng)
    elif kind == "control":
        name, data = "control", _lines(tuple({"do": word, "text": "x"} for word in COMMANDS), rng)
    else:
        name, data = "window.ini", INI
    done = [kind]
    if rng.random() < 0.5 and data:
        harm = rng.choice(TEXT)
        done.append(harm.__name__)
        data = harm(data, rng)
    files = {name: data}
    if kind == "spool":
        files |= {"1.json": rng.randbytes(rng.choice((0, 9, 5000))), "71.0.spool": b"\xff\n"}
    return " ".join(done), name, files


def examine(path: Path) -> str:
    """The word for how it ended; anything else than a result or one error is raised."""
    look = {"70.0.spool": _spool, journal.NAME: _sweep, store.LINES: _matrix, "control": _control,
            "window.ini": _settings}[path.name]
    try:
        look(path)
    except ProfilerError as error:
        assert str(error).strip(), "an error says what it is"
        return "error"
    return "result"


def _spool(path: Path) -> None:
    """What a target sends ends in a run that can be read, whatever it is."""
    run = path.parent / "a.stepscope"
    writer, clock = RunWriter.create(run, {"name": "x", "start_ns": 10**18}), Clock()
    source = SpoolSource(path.parent, TargetTree(), {"GPU-1": 1})
    source.open(writer, clock)
    for _ in range(2):
        source.read(writer, clock)
        writer.commit()
    source.close(writer, clock)
    writer.finish("finished", 10**18)
    assert writer.failed is None or not writer.failed, writer.failed
    read_all(run)


def _sweep(path: Path) -> None:
    found = journal.begin(path.parent, PROGRAM, resume=True)
    json.dumps([run.to_json() for run in found.every()])


def _matrix(path: Path) -> None:
    json.dumps(list(store.finished(path.parent).items()))


def _control(path: Path) -> None:
    """Every line is a command or a complaint; then comes the end."""
    woken: list[int] = []
    with path.open("rb") as file, contextlib.redirect_stderr(io.StringIO()):
        null = os.open(os.devnull, os.O_WRONLY)
        control = Control(lambda: woken.append(1), file.fileno(), null)
        control._read()
        os.close(null)
    commands = [control.take() for _ in woken]
    assert commands and commands[-1] == {"do": "eof"} and control.take() is None
    assert all(command and command["do"] in (*COMMANDS, "eof") for command in commands)


def _settings(path: Path) -> None:
    """What the window asks its settings for has its kind."""
    settings = Settings(path)
    assert isinstance(settings.theme, str)
    assert all(isinstance(text, str) for text in settings.texts("recent"))
    on_screen(settings.geometry or QRect(), [QRect(0, 0, 1920, 1080)])
    settings.state("launch/splitter")
    settings.remember("recent", "x")


FUZZ = fuzzing.Fuzz("tests.record.fuzz", case, store.code, examine, memory=1 << 29, addresses=1 << 31)


if __name__ == "__main__":
    sys.exit(fuzzing.main(FUZZ, __doc__ or ""))
