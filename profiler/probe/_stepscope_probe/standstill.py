"""A loop that makes no steps any more: where its thread is, told while it stands still.

The recorder sees by itself that no steps come. What it cannot see is told here, once for
each standstill, by a thread of ours that wakes once a second.
"""

import json
import os
import time
from _thread import start_new_thread

from .stacks import _TIME, begun, stack_of
from .stages import BACKWARD, DATA, FORWARD, H2D, OPTIMIZER
from .tape import BACKWARD as NOTED_BACKWARD
from .tape import FETCH, FETCHED, INFERENCE, STEP
from .tape import FORWARD as NOTED_FORWARD

PERIOD_S = 1.0
LONG = 20  # times the median step
LEAST_S = 10.0
FEWEST = 3  # steps that a median is taken of
EARLY = 0.8  # of these: what is told here shall be there when the recorder tells of the standstill
_LENGTHS = {FETCH: 3, FETCHED: 4}  # values of a note; the others have two
_STAGES = {DATA: "data", H2D: "h2d", FORWARD: "forward", BACKWARD: "backward", OPTIMIZER: "optimizer"}
_NOTES = {FETCH: "data", NOTED_FORWARD: "forward", INFERENCE: "forward", NOTED_BACKWARD: "backward",
          STEP: "optimizer"}


class Standstill:
    """A part that is asked now and then; it begins to watch with the first step."""

    name = "standstill"

    def __init__(self, probe, clock=time.monotonic_ns, sleep=time.sleep):
        self.probe = probe
        self.loop = probe.loop
        self.clock = clock
        self.sleep = sleep
        self.least_ns = int(least_s() * 1e9)
        self._pid = None
        self._told = None  # the step of which was told

    def records(self, now):
        if self._pid != os.getpid():  # also after a fork, where the thread is not
            self._pid = os.getpid()
            start_new_thread(self._watch, (self._pid,))
        return ()

    def _watch(self, pid):
        while self._pid == pid == os.getpid() and not self.probe.muted:
            self.sleep(min(PERIOD_S, self.least_ns / 4e9))
            try:
                self.look()
            except Exception:  # the loop went on meanwhile, or the interpreter is taken down
                pass

    def look(self):
        """Tell where the loop is if its step takes far too long."""
        start, usual, now = begun(self.loop), usual_of(self.probe), self.clock()
        if start is None or start == self._told or usual is None:
            return
        if now - start < EARLY * max(LONG * usual, self.least_ns):
            return
        self._told = start
        stage = stage_of(self.loop)
        stack = stack_of(self.loop.thread) or ("", ())
        self.probe.spool.write(json.dumps(["standstill", now, {
            "since": start, "usual": usual, "inside": bool(self.loop.open), "stage": stage, "site": stack[0],
            "lines": list(stack[1]), "workers": self.probe.loader.deaths.look(self.probe.loader.all()),
        }]) + "\n")


def usual_of(probe):
    """Median of the newest steps, ns, those not sent yet among them; None while there are few.

    May be asked from another thread than the loop's.
    """
    walls = list(probe.pauses.sampler.walls)
    walls += [item[2] - item[1] for item in list(probe._waiting) if type(item) is list]
    walls = sorted(walls + noted(probe.loop.tape))
    return walls[len(walls) // 2] if len(walls) >= FEWEST else None


def noted(tape):
    """ns from each fetch to the next that is on the tape. Read from another thread."""
    if not tape.thread:
        return []
    notes, at, i = tape._notes[:], [], 0
    while i + 1 < len(notes):
        if notes[i] == FETCH:
            at.append(notes[i + 1])
        i += _LENGTHS.get(notes[i], 2)
    return [b - a for a, b in zip(at, at[1:])]


def stage_of(loop):
    """data, h2d, forward, backward or optimizer; "" outside them. Read from another thread."""
    tape = loop.tape
    if not tape.thread:
        return _STAGES.get(loop.stage, "")
    notes = tape._notes[-2:], tape._notes[-3:]
    if len(notes[1]) == 3 and notes[1][0] == FETCH and notes[1][1] > _TIME:
        return "data"
    return _NOTES.get(notes[0][0], "") if len(notes[0]) == 2 else ""


def least_s():
    """STEPSCOPE_STILL in the environment, as the recorder has it too."""
    try:
        return float(os.environ.get("STEPSCOPE_STILL") or LEAST_S)
    except ValueError:
        return LEAST_S
