"""Calls into a driver that may not return: a call that hangs costs itself alone."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from profiler.model import Sink
from profiler.sources import Clock

TELL_S = 2.0  # of no answer, from which it is said; a busy driver holds a call for less


class Job(Protocol):
    def read(self, sink: Sink, clock: Clock) -> None:
        """Ask and store; may take for ever."""
        ...

    def stuck(self, sink: Sink, clock: Clock) -> None:
        """Say that a reading has not returned for long. Called in another thread."""
        ...


class _Turn:
    """One tick's jobs for one thread. `at` is the number in `jobs` of the one that runs."""

    def __init__(self, jobs: list[Job], sink: Sink, clock: Clock) -> None:
        self.jobs, self.sink, self.clock = jobs, sink, clock
        self.at = 0
        self.void = False  # the job at `at` was left behind: the rest belongs to another thread
        self.error: Exception | None = None
        self.done = threading.Event()


class Relay:
    """Does its jobs one after the other, in a thread that is replaced when a job takes too long.

    A job that was left behind is not asked again until it has returned, so no job ever
    runs twice at a time. One hand-over a tick is all that this costs while nothing hangs.
    """

    def __init__(self, jobs: Sequence[Job], patience_s: float) -> None:
        self._jobs = list(jobs)
        self._patience_s = patience_s
        self._left: dict[int, float] = {}  # id of a job -> since when, monotonic s; inf: it is said
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[_Turn | None] | None = None

    def read(self, sink: Sink, clock: Clock) -> None:
        """One tick. Raises what a job raises, when all others are done."""
        jobs = self._jobs
        if self._left:
            self._tell(sink, clock)
            with self._lock:
                jobs = [job for job in jobs if id(job) not in self._left]
        turn = _Turn(jobs, sink, clock)
        error: Exception | None = None
        while turn.jobs:
            self._hand_over(turn)
            rest = self._wait(turn)
            error = error or turn.error
            turn = _Turn(rest, sink, clock)
        if error is not None:
            raise error

    def close(self) -> bool:
        """End the thread. Whether no call is under way: only then may the library be shut down."""
        if self._work is not None:
            self._work.put(None)
            self._work = None
        with self._lock:
            return not self._left

    def _tell(self, sink: Sink, clock: Clock) -> None:
        now = time.monotonic()
        with self._lock:
            told = [job for job in self._jobs if now - self._left.get(id(job), now) >= TELL_S]
            self._left |= {id(job): float("inf") for job in told}
        for job in told:
            job.stuck(sink, clock)

    def _hand_over(self, turn: _Turn) -> None:
        if self._work is None:
            self._work = queue.SimpleQueue()
            # a daemon: a call that hangs for ever must not keep the recorder alive
            threading.Thread(target=self._run, args=(self._work,), name="driver-calls", daemon=True).start()
        self._work.put(turn)

    def _wait(self, turn: _Turn) -> list[Job]:
        """Until the turn is done, or a job of it is left behind: then the jobs that are still to do."""
        at = -1
        while not turn.done.wait(self._patience_s):
            with self._lock:
                if turn.at == at < len(turn.jobs):
                    turn.void = True
                    self._left[id(turn.jobs[at])] = time.monotonic()
                    self._work = None
                    return turn.jobs[at + 1:]
                at = turn.at
        return []

    def _run(self, work: queue.SimpleQueue[_Turn | None]) -> None:
        while (turn := work.get()) is not None:
            for job in turn.jobs:
                try:
                    job.read(turn.sink, turn.clock)
                except Exception as error:
                    turn.error = turn.error or error
                with self._lock:
                    if turn.void:
                        del self._left[id(job)]
                        return
                    turn.at += 1
            turn.done.set()
