"""Plain helpers of workloads: the error for the user, and lines that tell how far a run is.

Importing this does not import torch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any


class WorkloadError(Exception):
    """A workload cannot run as asked: one line for the user, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint


def keep(kind: str, text: str, data: Mapping[str, Any]) -> None:
    """Print what a run found out, a line, and keep it in the run file where one is recorded."""
    print(text, flush=True)
    if (probe := sys.modules.get("_stepscope_probe")) is not None:
        probe.event(kind, text, dict(data))


class Progress:
    """Counts steps and says about once a second, on stdout, how far the loop is and how the loss stands."""

    def __init__(self, steps: int, samples: int, unit: str = "samples", tells: str = "loss") -> None:
        """`samples`: how many of `unit` one step takes; `tells`: what the number of a step is."""
        self.steps, self.samples, self.unit, self.tells = steps, samples, unit, tells
        self.step = self.taken = 0
        self.started = self.told = time.monotonic()

    def update(self, loss: Any, samples: int | None = None) -> bool:
        """One step is done, of other `samples` where that is given. True when it was the last one."""
        self.step += 1
        self.taken += self.samples if samples is None else samples
        now = time.monotonic()
        last = self.step >= self.steps
        if last or self.step == 1 or now - self.told >= 1:
            self.told = now
            # The only read of the loss: each one waits for the device.
            value = loss if isinstance(loss, float) else loss.item()
            print(f"step {self.step}/{self.steps} {self.tells} {value:.4f}", flush=True)
        if last:
            self.finish()
        return last

    def finish(self) -> None:
        seconds = time.monotonic() - self.started
        rate = self.taken / seconds
        print(f"{self.step} steps in {seconds:.1f} s, {rate:.1f} {self.unit}/s over all of them", flush=True)


class Bar:
    """How far the making of data is, on stderr: a moving bar on a terminal, else a line every two seconds."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total = title, total
        self.terminal = sys.stderr.isatty()
        self.told = time.monotonic()

    def update(self, done: int) -> None:
        now = time.monotonic()
        if done < self.total and now - self.told < (0.1 if self.terminal else 2):
            return
        self.told = now
        text = f"{self.title} {done}/{self.total}"
        if not self.terminal:
            print(text, file=sys.stderr, flush=True)
            return
        bar = "#" * (30 * done // max(1, self.total))
        print(f"\r[{bar:<30}] {text}", end="\n" if done >= self.total else "", file=sys.stderr, flush=True)
