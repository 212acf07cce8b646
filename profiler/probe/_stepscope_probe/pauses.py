"""What makes single steps long: garbage collections, what torch saves, and where else the loop's thread is.

Each pause of 5 ms or more becomes an event. Where they are many, most are only summed up, in the next one
that is told.
"""

import functools
import gc
import json
import time
from _thread import get_ident
from collections import deque

import torch

from .hook import Hook, hide_frames
from .sites import user_site
from .stacks import FEWEST, Sampler

SHORT_NS = 5_000_000
_ALL = 100  # pauses of a kind that are told at once; after n of them there lies n / 10 s between two
_TEXTS = {"gc": "Garbage collection took %.0f ms", "save": "torch.save took %.0f ms",
          "stack": "A step took long, it was seen after %.0f ms"}


class PauseHook(Hook):
    """Collections and stacks are watched from the eighth training step on, and never in a loader's worker."""

    name = "pauses"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self.found = deque(maxlen=1000)  # filled on any thread and inside anything, where collections come
        self.sampler = Sampler(probe.loop, self.found)
        self.watching = self.ended = False
        self._begun = 0
        self._told = {}

    def install(self):
        hook, original = self, torch.save

        @functools.wraps(original)
        def save(*args, **kwargs):
            t0 = time.monotonic_ns()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise
            finally:
                hook.saved(t0)

        self.patch(torch, "save", save)
        if torch.serialization.save is original:
            self.patch(torch.serialization, "save", save)

    def remove(self):
        Hook.remove(self)
        self.unwatch()

    def saved(self, t0):
        try:
            took = time.monotonic_ns() - t0
            if took >= SHORT_NS and self.watching and get_ident() == self.loop.thread:
                self.found.append((t0, "save", took, {"site": user_site()}))
        except Exception as error:
            self.fail(error)

    def collected(self, phase, info):
        """Python's garbage collector begins or ends, on whichever thread."""
        try:
            now = time.monotonic_ns()
            if phase == "start":
                self._begun = now
            elif now - self._begun >= SHORT_NS:
                self.found.append((self._begun, "gc", now - self._begun, {
                    "generation": info.get("generation"), "collected": info.get("collected"),
                    "site": user_site()}))
        except Exception:  # also while the interpreter is taken down
            self.unwatch()

    def watch(self):
        self.watching = True
        gc.callbacks.append(self.collected)
        self.sampler.start()

    def unwatch(self):
        """Also in a forked child, until it has made steps of its own."""
        self.watching = False
        if self.collected in gc.callbacks:
            gc.callbacks.remove(self.collected)
        self.sampler.stop()

    def finished(self, waiting):
        """Steps among what is about to be sent."""
        self.sampler.walls.extend([item[2] - item[1] for item in waiting if type(item) is list])

    def records(self, now):
        """What was found since the last time, on the step's thread."""
        if not self.watching:
            if self.failed or self.ended or not self.on or self.probe.counted < FEWEST:
                return
            self.watch()
        if self.sampler.failed is not None:
            self.unwatch()
            raise self.sampler.failed
        while self.found:
            line = self._line(*self.found.popleft())
            if line:
                yield line

    def end(self):
        """The process ends: what is left comes with the next records."""
        self.ended = True
        self.sampler.stop()
        self.sampler.tell()

    def _line(self, t0, cause, took, data):
        """The event's record, or "" where this one is only counted."""
        told = self._told.setdefault(cause, [0, 0, 0, 0])  # events, ns of the next, left out, their ns
        if told[0] >= _ALL and t0 < told[1] and not self.ended:
            told[2] += 1
            told[3] += took
            return ""
        told[0] += 1
        told[1] = t0 + told[0] * 100_000_000
        data = dict(data, cause=cause, ms=took / 1e6)
        if told[2]:
            data.update(left_out=told[2], left_out_ms=told[3] / 1e6)
            told[2] = told[3] = 0
        return json.dumps(["event", t0, "pause", "info", _TEXTS[cause] % (took / 1e6), data]) + "\n"
