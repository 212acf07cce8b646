"""What the probe saw of pauses in a loop, and how much of its long steps they explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from profiler.analysis.estimate import WORK
from profiler.analysis.series import BoolArray, FloatArray
from profiler.analysis.steps import Steps

if TYPE_CHECKING:
    from profiler.run.reader import Run

MEASURED = ("gc", "save")  # causes whose time is known; of a stack only where the thread was seen
EXPLAINS = 0.5  # share of what a step takes above the others


@dataclass(frozen=True)
class Pause:
    """A garbage collection ("gc"), a torch.save ("save"), or a look at a long step's stack ("stack").

    `site`: the line of the user's code, "" where there was none. `lines`: the stack, innermost
    first. `generation`: of a collection, the oldest one is 2.
    """

    t0_ns: int
    t1_ns: int
    cause: str
    site: str = ""
    lines: tuple[str, ...] = ()
    generation: int | None = None


@dataclass(frozen=True)
class Cause:
    """What steps have in common. `ns`: mean of it in each of the `steps` that have it.

    `site` is the line of the user's code that most of them show, with `lines`, the stack there.
    """

    kind: str  # gc, save or stack
    steps: int
    ns: float
    site: str
    lines: tuple[str, ...] = ()


def load_pauses(run: Run, process: int | None, extent: tuple[int, int] | None) -> tuple[Pause, ...]:
    """Those of a process that began in [t0, t1], in order of time."""
    if extent is None:
        return ()
    found = [_pause(event.t_ns, event.data) for event in run.events()
             if event.kind == "pause" and event.process == process and extent[0] <= event.t_ns <= extent[1]]
    return tuple(sorted((p for p in found if p is not None), key=lambda p: p.t0_ns))


def _pause(t_ns: int, data: Any) -> Pause | None:
    ms, cause, lines = data.get("ms"), data.get("cause"), data.get("lines")
    if not isinstance(ms, (int, float)) or not isinstance(cause, str):
        return None
    generation = data.get("generation")
    return Pause(t_ns, t_ns + round(ms * 1e6), cause, str(data.get("site") or ""),
                 tuple(map(str, lines)) if isinstance(lines, list) else (),
                 generation if isinstance(generation, int) else None)


def spent(pauses: Sequence[Pause], steps: Steps, cause: str) -> FloatArray:
    """ns of pauses of one cause inside each step."""
    total = np.zeros(len(steps))
    for pause in pauses:
        if pause.cause == cause:
            inside = np.minimum(steps.t1_ns, pause.t1_ns) - np.maximum(steps.t0_ns, pause.t0_ns)
            total += np.maximum(0, inside)
    return total


def cause_of(pauses: Sequence[Pause], steps: Steps, long: BoolArray) -> Cause | None:
    """What most of the `long` among these steps have in common; None where nothing was seen in half of them.

    A collection or a save counts where it takes half of what the step takes above the others, a line where
    it was seen in half of the long steps.
    """
    slow = steps.select(long)
    excess = slow.wall - float(np.median(steps.wall))
    for kind in MEASURED:
        ns = spent(pauses, slow, kind)
        explained = ns >= EXPLAINS * excess
        if explained.mean() >= EXPLAINS:
            inside = [p for p in pauses if p.cause == kind and _in_any(p, slow.select(explained))]
            return Cause(kind, int(explained.sum()), float(ns[explained].mean()), *_most(inside))
    seen = [p for p in pauses if p.cause == "stack" and p.site and _in_any(p, slow)]
    if not seen:
        return None
    site, lines = _most(seen)
    count = sum(p.site == site for p in seen)
    return Cause("stack", count, 0.0, site, lines) if count >= EXPLAINS * len(slow) else None


def measured(pauses: Sequence[Pause], steps: Steps) -> Cause | None:
    """The kind of pause that takes most of these steps, `ns` its mean over all of them; None without any."""
    if not len(steps):
        return None
    taken = {kind: spent(pauses, steps, kind) for kind in MEASURED}
    kind = max(taken, key=lambda name: float(taken[name].sum()))
    if not taken[kind].any():
        return None
    inside = [p for p in pauses if p.cause == kind and _in_any(p, steps)]
    return Cause(kind, int((taken[kind] > 0).sum()), float(taken[kind].mean()), *_most(inside))


def inside_work(pauses: Sequence[Pause], steps: Steps, long: BoolArray) -> float:
    """ns a step of collections and saves in the `long` steps that lie inside forward, backward or optimizer.

    Where in a step a pause lay was not measured: it is what these stages take above those of other
    steps, after what all other stages take more.
    """
    slow, usual = steps.select(long), steps.select(~long)
    if not len(slow) or not len(usual):
        return 0.0
    more = {stage: np.maximum(0, ns - np.median(usual.stages[stage])) for stage, ns in slow.stages.items()}
    work = sum(more[stage] for stage in WORK)
    paused = sum(spent(pauses, slow, kind) for kind in MEASURED)
    elsewhere = sum(ns for stage, ns in more.items() if stage not in WORK)
    return float(np.minimum(work, np.maximum(0, paused - elsewhere)).sum()) / len(steps)


def _in_any(pause: Pause, steps: Steps) -> bool:
    return bool(((steps.t0_ns <= pause.t0_ns) & (pause.t0_ns < steps.t1_ns)).any())


def _most(pauses: Sequence[Pause]) -> tuple[str, tuple[str, ...]]:
    site = Counter(p.site for p in pauses).most_common(1)[0][0] if pauses else ""
    lines = Counter(p.lines for p in pauses if p.site == site).most_common(1)
    return site, lines[0][0] if lines else ()
