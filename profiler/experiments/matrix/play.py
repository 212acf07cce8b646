"""One case, once: recorded, diagnosed as a user would, and judged."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from profiler.errors import ProfilerError, TargetError
from profiler.experiments.matrix.cases import CONTROL, Case
from profiler.experiments.matrix.judge import above_the_line, warnings, wrong
from profiler.experiments.matrix.others import accounts, others
from profiler.experiments.program import Program
from profiler.paths import own_command
from profiler.rules.words import failure
from profiler.run.reader import Run

LIMIT_S = 120.0  # of one recording, and of one diagnosis: many times what they take
TOLD, CRASHED, STUCK = "told", "crashed", "stuck"


class StuckError(TargetError):
    """A recording or a diagnosis that did not end in time."""


def play(case: Case, repeat: int, folder: Path, *, keep: bool = False, limit_s: float = LIMIT_S,
         tick: Callable[[float], None] = lambda seconds: None) -> dict[str, Any]:
    """What came of it: state (told, crashed, stuck), verdict, rules that warn, right, why not, seconds.

    `others`: cores that other programs kept busy meanwhile. What fails in the recording or in the
    diagnosis is told of this run, not raised.
    """
    before = accounts()
    output = folder / f"{''.join(c if c.isalnum() else '-' for c in case.name)}-{repeat}.stepscope"
    line: dict[str, Any] = {"case": case.to_json(), "repeat": repeat, "state": TOLD, "verdict": None,
                            "also": [], "rules": [], "right": False, "why": "", "versions": {}}
    try:
        if case.program is not None:
            line["versions"] = recorded(case.program, output, limit_s, case.trace_steps, tick)
        told = diagnosis(case.trace or output, limit_s)
        why = wrong(case, told)
        rules = above_the_line(told) if case.kind == CONTROL else warnings(told)
        line |= {"verdict": told["verdict"], "also": told["also"], "rules": rules, "right": not why,
                 "why": why}
    except StuckError as error:
        line |= {"state": STUCK, "why": error.message}
    except ProfilerError as error:
        line |= {"state": CRASHED, "why": error.message}
    finally:
        if not keep:
            _remove(output)
    after = accounts()
    return {**line, "seconds": round(after.clock - before.clock, 1),
            "others": round(others(before, after), 2)}


def recorded(program: Program, output: Path, limit_s: float, trace_steps: int | None = None,
             tick: Callable[[float], None] = lambda seconds: None) -> dict[str, Any]:
    """Record into `output`, in the place of what is there. Returns the versions that took part.

    TargetError when the program failed, with what it said last; StuckError when it did not end in time.
    """
    _remove(output)  # of a run that was cut off
    begin = time.monotonic()
    try:
        program.record(output, limit_s=limit_s, trace_steps=trace_steps, tick=tick)
    except TargetError as error:
        late = time.monotonic() - begin > limit_s
        raise StuckError(error.message) if late else error from None
    with Run.open(output) as run:
        ended = run.meta.get("exit") or {}
        printed = b"".join(data for _, _, data in run.output())
        versions = dict(run.meta.get("versions") or {})
        for process in run.processes:
            if version := (process.properties.get("torch") or {}).get("version"):
                versions["torch"] = version
    if ended.get("reason") == "duration":
        raise StuckError(f"the program did not end within {limit_s:g} s")
    if how := failure(ended):
        lines = printed.decode("utf-8", "replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise TargetError(f"the program {how}" + (f"; it said: {said}" if said else ""))
    return versions


def diagnosis(path: Path, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """What `stepscope diagnose --json` says, in a process of its own: it may crash or hang.

    TargetError when it fails, StuckError when it does not end.
    """
    try:
        # a session of its own: the Ctrl-C of the terminal is for us
        done = subprocess.run(own_command("diagnose", "--json", str(path)), capture_output=True, text=True,
                              errors="replace", timeout=limit_s, stdin=subprocess.DEVNULL,
                              start_new_session=True, check=False)
    except subprocess.TimeoutExpired:
        raise StuckError(f"the diagnosis did not end within {limit_s:g} s") from None
    told = None
    with suppress(ValueError):
        told = json.loads(done.stdout)
    if done.returncode or not isinstance(told, dict):
        said = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "nothing")
        raise TargetError(f"the diagnosis ended with status {done.returncode}; it said: {said}")
    return told


def _remove(output: Path) -> None:
    for suffix in (".stepscope", ".stepscope-wal", ".stepscope-shm", ".log", ".err"):
        output.with_suffix(suffix).unlink(missing_ok=True)
