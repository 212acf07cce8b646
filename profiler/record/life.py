"""The target's life as the recorder sees it: running, being ended, ended, and why."""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from pathlib import Path

import psutil

from profiler.errors import TargetError
from profiler.model import Sink
from profiler.record import session
from profiler.record.absent import AbsentProbes
from profiler.record.clock import Clock
from profiler.record.options import Options, signal_name, status_of
from profiler.record.stop import LEFTOVER_STAGES, StagedStop, alive, carriers
from profiler.record.target import PtyTarget, Target
from profiler.run.alive import process_start
from profiler.sources.tree import TargetTree

LEFT_SHOWN = 10
GIVE_UP_S = 2.0  # how long to wait for the status of a target that nothing can end


class Life:
    """What is recorded: a command that we started, a process that runs already, or no process at all.

    `reason` is None until it ends, or is to end: ended, stopped, killed,
    terminated, steps, duration, detached. `code` is the target's exit code.
    """

    def __init__(self, options: Options, sink: Sink, clock: Clock, spool: Path) -> None:
        self.tree = TargetTree()
        self.target: Target | PtyTarget | None = None
        self.reason: str | None = None
        self.code: int | None = None
        self.absent: AbsentProbes | None = None
        self._options = options
        self._sink = sink
        self._clock = clock
        self._spool = spool
        self._lifeline: int | None = None
        self._stop: StagedStop | None = None
        self._all_ended = False
        self._given_up = 0.0
        self._watched_start: float | None = None

    def begin(self) -> None:
        """Start the command, or find the process. TargetError when there is none."""
        options = self._options
        if options.command:
            self.target, self._lifeline = session.start_target(options, self._spool)
            self._follow(self.target.pid, shlex.join(options.command))
            self.absent = AbsentProbes(self.tree.processes, self._spool)
        elif options.pid is not None:
            self._watched_start = process_start(options.pid)
            if self._watched_start is None:
                raise TargetError(f"there is no process {options.pid}", "List processes with ps")
            self._follow(options.pid, _command_of(options.pid))

    def _follow(self, pid: int, command: str) -> None:
        process = self._sink.add_process(pid, "target", command=command, started_ns=self._clock.now_ns())
        self.tree.follow(pid, process)

    def fds(self) -> list[int]:
        """Descriptors that tell of output or of the end."""
        if self.target is None or (self.code is not None and isinstance(self.target, Target)):
            return []  # once it has ended its descriptor is readable for ever
        return self.target.fds()

    @property
    def bound(self) -> bool:
        """Whether the target ends with the recorder."""
        return self._lifeline is not None

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        if self.reason == "detached" or (self.target is None and self.reason is not None):
            return True
        if self.code is None:
            return self._all_ended and time.monotonic() > self._given_up
        return self._stop is None or self._all_ended

    def stop(self, reason: str, *, kill: bool = False) -> None:
        """End it, the target in stages. Does not wait."""
        self.reason = self.reason or reason
        if self.target is None or self.code is not None:
            return
        if self._stop is None:
            if self.absent is not None:
                self.absent.look()  # afterwards there is nothing left to look at
            self._stop = StagedStop(self._members)
        if kill:
            self._stop.hurry()

    def check(self) -> None:
        """Look whether the target has ended; go on with a stop that is on its way."""
        if self.target is not None and self.code is None and (code := self.target.poll()) is not None:
            self._ended(code)
        if self._stop is not None and not self._all_ended:
            self._all_ended = self._stop.advance()
            if self._all_ended and (left := self._stop.survivors()):
                self._tell_left(left, "could not be ended", "warning")
            self._given_up = time.monotonic() + GIVE_UP_S

    def check_watched(self) -> None:
        """Look whether a process that is only watched has ended."""
        if self._watched_start is not None and process_start(self._options.pid) != self._watched_start:
            self.reason = self.reason or "ended"

    def _ended(self, code: int) -> None:
        self.code = code
        if self._stop is None and self.bound:
            self._stop = StagedStop(self._members, LEFTOVER_STAGES)
        self.reason = self.reason or "ended"
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with status {code}"
        severity = "error" if code and self.reason == "ended" else "info"
        self._sink.event(self._clock.now_ns(), "target_exit", severity, f"The command {how}",
                         process=self.tree.process, data={"code": status_of(code), "reason": self.reason})
        if self._stop is None and (left := [process for process in self._members() if alive(process)]):
            self._tell_left(left, "go on", "info")

    def _tell_left(self, left: list[psutil.Process], how: str, severity: str) -> None:
        """Processes of the target that outlive it hold what they have: memory of a GPU, ports, files."""
        pids = sorted({process.pid for process in left})
        shown = ", ".join(map(str, pids[:LEFT_SHOWN])) + (", ..." if len(pids) > LEFT_SHOWN else "")
        self._sink.event(self._clock.now_ns(), "left_running", severity,
                         f"Processes of the command {how}: {shown}", process=self.tree.process,
                         data={"pids": pids})

    def _members(self) -> list[psutil.Process]:
        """The processes of the target: its tree, and where it is bound to us also what left the tree."""
        assert self.target is not None
        members = self.tree.processes()
        with suppress(psutil.Error):
            if self.code is None:  # afterwards the number may be another's
                root = psutil.Process(self.target.pid)
                members = [*members, root, *root.children(recursive=True)]
        if self.bound:
            relay = self.target.relay_pid if isinstance(self.target, PtyTarget) else None
            found = carriers("STEPSCOPE_SPOOL", str(self._spool))
            members = [*members, *(process for process in found if process.pid != relay)]
        return members

    def close(self) -> None:
        """Let go of it."""
        if self.target is not None:
            self.target.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


def _command_of(pid: int) -> str:
    with suppress(psutil.Error):
        return shlex.join(psutil.Process(pid).cmdline())
    return ""
