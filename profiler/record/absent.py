"""Processes that use torch and send nothing: the probe did not get in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from profiler.model import Sink
from profiler.paths import PROBE
from profiler.sources import Clock

HELP = "import stepscope; stepscope.attach()"
ELSEWHERE = "its steps go to another recording, which was started inside this one"
LOOKS_S = (2.0, 5.0, 10.0, 30.0)  # after the start; then once a minute
MOST_TOLD = 20  # processes: in a day thousands may come and go
GRACE_S = 4.0  # between torch being mapped and the probe's first line lies the import
ENTERED_S = 120.0  # the same where the probe has said that the import begins: slow disks, busy machines
_SKIPPING = {"I": "python -I", "E": "python -E", "S": "python -S"}


class AbsentProbes:
    """Looks, rarely, for processes of the tree that have loaded torch without a word from the probe."""

    def __init__(self, members: Callable[[], Iterable[psutil.Process]], spool: Path) -> None:
        self._members = members
        self._spool = spool
        self._begin = time.monotonic()
        self._looks = list(LOOKS_S)
        self._suspects: dict[int, tuple[float, str]] = {}  # pid -> first seen, cause
        self._told = 0
        self._settled: set[int] = set()  # told, or known to have no reason to speak

    def tick(self, sink: Sink, clock: Clock) -> None:
        """Look when it is time. Called about once a second."""
        if time.monotonic() - self._begin >= self._looks[0]:
            last = self._looks.pop(0)
            self._looks = self._looks or [last + 60.0]
            self.look()
        self._tell(sink, clock, GRACE_S)

    def look(self) -> None:
        """Note the processes that have torch's library in memory and have not said hello."""
        spoken = self._spoken()
        for process in list(self._members()):
            if process.pid in self._settled or process.pid in self._suspects:
                continue
            with suppress(OSError, psutil.Error):
                if _has_torch(process.pid) and not self._heard(process, spoken):
                    self._suspects[process.pid] = (time.monotonic(), cause(process, self._spool))

    def end(self, sink: Sink, clock: Clock) -> None:
        """The recording ends: tell of those that were seen and stayed silent."""
        self._tell(sink, clock, 1.0)

    def _spoken(self) -> set[int]:
        pids = {path.name.partition(".")[0] for path in self._spool.glob("*.spool")}
        return {int(pid) for pid in pids if pid.isdigit()}

    def _entered(self, pid: int) -> bool:
        return (self._spool / f"{pid}.entered").exists()

    @staticmethod
    def _heard(process: psutil.Process, spoken: set[int]) -> bool:
        # a loader worker has torch in memory from its parent, which speaks for it
        return process.pid in spoken or any(parent.pid in spoken for parent in process.parents())

    def _tell(self, sink: Sink, clock: Clock, grace_s: float) -> None:
        if not self._suspects:
            return
        spoken = self._spoken()
        for pid, (seen, why) in list(self._suspects.items()):
            if pid in spoken:
                del self._suspects[pid]
                self._settled.add(pid)
            elif time.monotonic() - seen >= (ENTERED_S if self._entered(pid) else grace_s):
                del self._suspects[pid]
                self._settled.add(pid)
                if self._told >= MOST_TOLD:
                    continue
                self._told += 1
                text = f"Process {pid} uses torch and sends no steps: {why}"
                if why != ELSEWHERE:
                    text += f". This line in it helps: {HELP}"
                sink.event(clock.now_ns(), "probe_absent", "warning", text,
                           data={"pid": pid, "cause": why, "help": HELP})


def _has_torch(pid: int) -> bool:
    with Path(f"/proc/{pid}/maps").open("rb") as maps:
        return any(b"/libtorch" in line for line in maps)


def cause(process: psutil.Process, spool: Path) -> str:
    """Why the probe is not in there, as far as the process's command and environment tell."""
    arguments = process.cmdline()[1:]
    for argument in arguments:
        if not argument.startswith("-") or argument in ("-c", "-m"):
            break
        if not argument.startswith("--"):
            for letter in argument[1:]:
                if letter in _SKIPPING:
                    return f"{_SKIPPING[letter]} skips the probe"
    env = process.environ()
    other = env.get("STEPSCOPE_SPOOL")
    if other != str(spool):
        if other and Path(other).is_dir():  # else the recording has ended
            return ELSEWHERE
        return "it was started without our environment"
    if str(PROBE) not in env.get("PYTHONPATH", "").split(os.pathsep):
        return "its PYTHONPATH was replaced"
    if "python" not in Path(process.exe()).name:
        return "it is a program with Python inside, which does not read PYTHONPATH"
    return "the probe did not start in it"
