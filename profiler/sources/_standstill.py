"""Loops that have made steps and make no more: told while they stand still, and at the end.

From how many seconds on is STEPSCOPE_STILL in the environment, 10 without it; and never before 20
times the usual step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._probed import ProbedProcess

LONG = 20  # times the median step, and at least
LEAST_S = 10.0
FEWEST = 3  # steps that a median is taken of
MOST_TOLD = 20  # standstills of one process that are told
TOLD = ("inside", "stage", "site", "lines", "workers")  # by the probe
DOES = {"data": "waits for data", "h2d": "copies a batch to the device", "forward": "is in forward",
        "backward": "is in backward", "optimizer": "is in the optimizer"}


@dataclass
class _State:
    since_ns: int | None = None  # end of the last step before the standstill that was told
    inside: bool = False
    told: int = 0


class Standstills:
    """`alive` tells whether a pid is a living process of the target."""

    def __init__(self, alive: Callable[[int], bool]) -> None:
        self._alive = alive
        self._least_ns = round(_least_s() * 1e9)
        self._states: dict[int, _State] = {}

    def tick(self, loops: Sequence[ProbedProcess], sink: Sink, clock: Clock) -> list[str]:
        """Tell of each that stands still since now, or goes on. Called about once a second.

        Returns what the user should read at once: of those that stand still inside a step.
        """
        now, said = clock.now_ns(), []
        for loop in loops:
            state = self._states.setdefault(loop.pid, _State())
            last = loop.last_step_ns
            if state.since_ns is not None and last is not None and last > state.since_ns:
                self._goes_on(loop, state, last, sink)
            if loop.ended:
                continue
            since, usual = _pace(loop)
            if since is None or usual is None or state.since_ns is not None:
                continue
            if now - since >= max(LONG * usual, self._least_ns) and self._alive(loop.pid):
                text = self._stands_still(loop, state, now, sink)
                if text:
                    said.append(text)
        return said

    def standing(self, loops: Sequence[ProbedProcess], now_ns: int) -> list[str]:
        """At the end: of each that stood still inside a step till then."""
        found = []
        for loop in loops:
            state = self._states.get(loop.pid)
            if state and state.since_ns is not None and state.inside:
                found.append(_sentence(loop, now_ns - state.since_ns))
        return found

    def _stands_still(self, loop: ProbedProcess, state: _State, now: int, sink: Sink) -> str:
        since, usual = _pace(loop)
        assert since is not None and usual is not None
        state.since_ns = since
        state.told += 1
        state.inside = loop.still.get("inside") is not False  # where the probe says nothing it may be
        if state.told > MOST_TOLD:
            return ""
        text = _sentence(loop, now - since)
        sink.event(now, "no_step", "warning" if state.inside else "info", text, process=loop.process,
                   data={"seconds": (now - since) / 1e9, "usual_seconds": usual / 1e9, "since_ns": since,
                         **{key: loop.still.get(key) for key in TOLD}})
        return text if state.inside else ""

    def _goes_on(self, loop: ProbedProcess, state: _State, last: int, sink: Sink) -> None:
        assert state.since_ns is not None
        if state.told <= MOST_TOLD:
            sink.event(last, "steps_again", "info", f"Process {loop.pid} makes steps again, "
                       f"{(last - state.since_ns) / 1e9:.0f} s after the last one", process=loop.process,
                       data={"seconds": (last - state.since_ns) / 1e9})
        state.since_ns = None


def _least_s() -> float:
    try:
        return float(os.environ.get("STEPSCOPE_STILL") or LEAST_S)
    except ValueError:
        return LEAST_S


def _pace(loop: ProbedProcess) -> tuple[int | None, int | None]:
    """End of the last step and median of the newest, ns; the probe knows of steps that it has not sent."""
    if loop.still:
        return loop.still["since_ns"], loop.still["usual_ns"]
    walls = list(loop.walls)
    return loop.last_step_ns, round(median(walls)) if len(walls) >= FEWEST else None


def _sentence(loop: ProbedProcess, took: int) -> str:
    still, usual = loop.still, _pace(loop)[1] or 0
    step = f"{usual / 1e9:.1f} s" if usual >= 1e9 else f"{usual / 1e6:.3g} ms"
    text = f"No step of process {loop.pid} for {took / 1e9:.0f} s, where one takes {step}"
    if not still:
        return f"{text}: it does not say where it is"
    where = f" at {still['site']}" if isinstance(still.get("site"), str) and still["site"] else ""
    if still.get("inside") is False:
        text += f": its loop has ended or pauses{where}"
    else:
        text += f": it {DOES.get(str(still.get('stage')), 'is between the stages')}{where}"
    workers = still.get("workers")
    told = [str(item) for item in workers] if isinstance(workers, list) else []
    return ". ".join([text, *told])
