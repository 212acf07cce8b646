"""The steps of the training process, read once and then only what is new; and their bars. On the worker."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.live.series import nice
from app.widgets.chart_data import Floats, StepBars
from profiler.analysis.steps import MOST_STEPS, Steps, from_when, load_steps, training_process
from profiler.model import STAGES
from profiler.run.reader import Run

BAR_PX = 8  # below so many pixels a step, steps share a bar
CHOOSE_EVERY = 32  # updates between two looks for the process with most steps


class LiveSteps:
    """The steps of the training process, in order. Of very many the newest.

    int64[n]: `t0_ns`, `t1_ns`, `index`, `flags`; `stages` float64[stage, n] in ns, in the order of
    model.STAGES; `samples` float64[n].
    """

    def __init__(self) -> None:
        self._updates = 0
        self._clear(None)

    def _clear(self, process: int | None) -> None:
        self.process = process
        whole: NDArray[np.int64] = np.empty(0, np.int64)
        self.t0_ns, self.t1_ns, self.index, self.flags = whole, whole, whole, whole
        self.samples: Floats = np.empty(0)
        self.stages: Floats = np.empty((len(STAGES), 0))

    def __len__(self) -> int:
        return len(self.t1_ns)

    def update(self, run: Run) -> None:
        """Read what is new; all of it where another process has become the one with most steps."""
        if self.process is None or self._updates % CHOOSE_EVERY == 0:
            process = training_process(run)
            if process != self.process:
                self._clear(process)
        self._updates += 1
        if self.process is not None:
            since = int(self.t1_ns[-1]) + 1 if len(self) else None
            self._append(load_steps(run, self.process, from_when(run, self.process, since, None)[0]))
            if len(self) > 2 * MOST_STEPS:
                self._forget(len(self) - MOST_STEPS)

    def _append(self, steps: Steps) -> None:
        if not len(steps):
            return
        self.t0_ns = np.concatenate([self.t0_ns, steps.t0_ns])
        self.t1_ns = np.concatenate([self.t1_ns, steps.t1_ns])
        self.index = np.concatenate([self.index, steps.index])
        self.flags = np.concatenate([self.flags, steps.flags])
        self.samples = np.concatenate([self.samples, steps.extras["samples"]])
        new = np.stack([steps.stages[stage] for stage in STAGES]).astype(np.float64)
        self.stages = np.concatenate([self.stages, new], axis=1)

    def _forget(self, first: int) -> None:
        """Drop so many of the oldest steps: all of a long run would take gigabytes."""
        for name in ("t0_ns", "t1_ns", "index", "flags", "samples"):
            setattr(self, name, getattr(self, name)[first:].copy())
        self.stages = self.stages[:, first:].copy()

    def at(self, t_ns: int) -> int | None:
        """The place of the step that runs at a time; None outside of all."""
        i = int(np.searchsorted(self.t1_ns, t_ns))
        return i if i < len(self) and t_ns >= self.t0_ns[i] else None


def bars(steps: LiveSteps, start_ns: int, x0: float, x1: float, width_px: float) -> StepBars:
    """The bars between `x0` and `x1` seconds on `width_px` pixels.

    Bins lie on a fixed grid, so that a bar does not change while the view moves. A
    bar shows the step with the median time of its bin: its stages sum to its height.
    """
    end = (steps.t1_ns - start_ns) / 1e9
    wall = (steps.t1_ns - steps.t0_ns) / 1e9
    pixel = (x1 - x0) / max(width_px, 1.0)
    first, last = (int(i) for i in np.searchsorted(end, [x0 - 1e-9, x1]))
    last = min(last + 1, len(end))
    if first >= last:
        return StepBars(stages=STAGES)
    if float(np.median(wall[first:last])) >= BAR_PX * pixel:
        seen = slice(first, last)
        return StepBars(end[seen] - wall[seen], end[seen], steps.stages[:, seen] / 1e6, wall[seen] * 1e3,
                        STAGES, 0.0)
    bin_s = nice(BAR_PX * pixel)
    # Whole bins only: one that the view cuts keeps its height.
    first = int(np.searchsorted(end, np.floor(x0 / bin_s) * bin_s))
    last = int(np.searchsorted(end, np.ceil(x1 / bin_s) * bin_s))
    bins = np.floor(end[first:last] / bin_s).astype(np.int64)
    starts = np.flatnonzero(np.r_[True, np.diff(bins) > 0])
    counts = np.diff(np.r_[starts, len(bins)])
    order = np.lexsort((wall[first:last], bins))
    median = first + order[starts + (counts - 1) // 2]
    left: Floats = bins[starts].astype(np.float64) * bin_s
    return StepBars(left, left + bin_s, steps.stages[:, median] / 1e6,
                    np.maximum.reduceat(wall[first:last], starts) * 1e3, STAGES, bin_s)
