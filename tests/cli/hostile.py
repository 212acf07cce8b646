"""A run and a trace of somebody who means harm: each name in them, and of the files, is for a terminal."""

from __future__ import annotations

from pathlib import Path

from profiler.run.results import append_result
from profiler.run.writer import RunWriter
from tests.runs import make_run
from tests.traces import Timeline

LINK = "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\"
NAME = (f"\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b2K{LINK}\u202egnp.\u200bexe\u2066\r\nall is well\x07\x00\x7f"
        "\u2028" + "e" + "\u0301" * 60 + "<img src=x onerror=alert(1)>=cmd|'/C calc'!A0")
FILE = "\x1b[2J\x9b31m\u202eevil\r\nall is well\x07"  # what a file can be called


def hostile_trace() -> Timeline:
    line = Timeline()
    for step in range(6):
        t = 1_000_000 + step * 10_000_000
        line.step(step, t, t + 10_000_000)
        line.op(NAME, t, t + 3_000_000, stack=f"{NAME}.py(3): {NAME}")
        line.python(f"{NAME}.py(3): {NAME}", t, t + 2_000_000)
        line.call("cudaLaunchKernel", t + 1_000_000, t + 1_100_000, step + 1)
        line.kernel(NAME, t + 3_100_000, t + 8_000_000, step + 1)
        line.annotation(NAME, t, t + 9_000_000)
    return line


def hostile_run(path: Path) -> Path:
    """A run in which all that may be a text is one."""
    trace = hostile_trace().bytes()

    def happened(writer: RunWriter, start: int) -> None:
        writer.event(start, "mark", "warning", NAME, data={"name": NAME, NAME: NAME})
        writer.event(start, NAME, NAME, NAME)
        writer.output(start, NAME.encode())
        writer.add_device(NAME, 1, NAME, properties={"name": NAME})
        writer.add_process(77, NAME, command=NAME, properties={"script": NAME, "torch": {"version": NAME}})
        writer.attach(start, "kineto", NAME, trace, process=1, properties={"steps": [1, 4], "note": NAME})

    make_run(path, gpu={"gpu.util": 0.5}, device={"forward": 5.0, "backward": 9.0}, events=happened,
             sites={"data": [f"{NAME}.py:3"]}, properties={"argv": [NAME], "note": NAME},
             loader={"num_workers": 0, "class": NAME, "dataset": NAME},
             meta={"name": NAME, "notes": NAME, "command": [NAME, NAME], "cwd": NAME, "journal_note": NAME,
                   "environment": {"PYTHONPATH": NAME, NAME: NAME}, "git": {"commit": NAME, "branch": NAME},
                   "machine": {"hostname": NAME, "system": NAME, "cpu": NAME, "cores": 8},
                   "versions": {"torch": NAME, NAME: NAME}, "exit": {"code": 1, "reason": NAME},
                   "gpu": {"state": "absent", "reason": NAME, "hint": NAME, "driver": NAME}})
    append_result(path, "experiment", {
        "setting": NAME, "remedy": {"setting": NAME, "from": NAME, "to": NAME}, "prediction": None,
        "outcome": NAME, "score": NAME, "ratio": None, "reason": NAME, "runs": [], "notes": [NAME]})
    return path

