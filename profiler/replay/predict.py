"""What a step would take without each cost, and how far the replay that says so can be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steady import Steady
from profiler.analysis.trace.steps import Steps
from profiler.replay import scenarios, work
from profiler.replay.build import Columns, Model, columns, model, program
from profiler.replay.fit import Fit, fit
from profiler.replay.paces import Pace, measured, paces
from profiler.replay.result import Replay, Scenario
from profiler.replay.run import run
from profiler.replay.work import Work

BUDGET = 150_000      # operations of one replay
TRUSTED = 0.05        # error of the unchanged replay up to which predictions are given
LOADER_UNKNOWN = "how fast the loader could be is unknown: it never made the loop wait"
UNKNOWN_BINDING = "some stream waits have several possible causes"


def predict(j: Joined, steps: Steps, steady: Steady, *, budget: int = BUDGET,
            scale_to_ns: int | None = None) -> Replay:
    """Replay the steps as they were and under every scenario.

    `budget`: operations of one replay at most, but at least one step is replayed.
    `scale_to_ns`: step time measured without the profiler, which host costs are scaled to.
    """
    if not steps.per_step or not steps.counted.any():
        return Replay.none("the trace has no steps")
    m = model(j, steps, budget)
    truth = measured(steady, m.segments)
    fits = [fit(j, m.events, m.bound, m.lanes, m.segments.follows, bounded) for bounded in (True, False)]
    programs = [columns(m, f) for f in fits]
    base = [_pace(m, c, f) for c, f in zip(programs, fits)]
    error, unbounded = (abs(pace.of(truth) / truth.step - 1) for pace in base)
    notes = [] if scale_to_ns else ["host costs include the profiler's own"]
    scale = 1.0
    if scale_to_ns:
        scale = _scale(m, programs[0], fits[0], scale_to_ns)
        programs = [_scaled(c, scale) for c in programs]
        base = [_pace(m, c, f) for c, f in zip(programs, fits)]
    if m.bound.ambiguous:
        notes.append(UNKNOWN_BINDING)
    result = Replay(round(base[0].step), round(truth.step), error, unbounded, int(m.segments.counted.sum()),
                    scale=scale, notes=tuple(notes))
    if error > TRUSTED:
        why = (f"the unchanged replay misses the measured step time by {100 * error:.1f} %, "
               f"more than {100 * TRUSTED:.0f} %")
        return replace(result, withheld=why)
    w = work.find(m)
    found = []
    for name in scenarios.SCENARIOS if len(j.trace.device) else ("no_input_wait",):
        found.append(_scenario(m, w, name, programs, fits, base, error))
    return replace(result, scenarios=tuple(found))


def _scenario(m: Model, w: Work, name: str, programs: list[Columns], fits: list[Fit], base: list[Pace],
              error: float) -> Scenario:
    change = scenarios.SCENARIOS[name]
    changed = [_pace(m, change(m, w, c), f) for c, f in zip(programs, fits)]
    speedup = base[0].over(changed[0])
    span = [speedup, base[1].over(changed[1]), *base[0].spread(changed[0])]
    also = [(reading, base[0].over(_pace(m, other(m, w, programs[0]), fits[0])))
            for reading, other in scenarios.READINGS.get(name, ())]
    note = ""
    if name != "no_input_wait" and m.loader.hidden and max([speedup, *(s for _, s in also)]) > 1 + 0.01:
        note = LOADER_UNKNOWN
    return Scenario(name, round(base[0].step / speedup), speedup, min(span) * (1 - error),
                    max(span) * (1 + error), note, tuple(also))


def _pace(m: Model, c: Columns, f: Fit) -> Pace:
    return paces(run(program(m, c, f.depth)), m.segments)


def _scaled(c: Columns, scale: float) -> Columns:
    """With the host's own time multiplied; waits keep their tails and activities their durations."""
    return c.with_(before=np.round(c.before * scale).astype(np.int64),
                   cost=np.round(c.cost * scale).astype(np.int64))


def _scale(m: Model, c: Columns, f: Fit, target: int) -> float:
    """Factor of host costs, at most 1, with which the unchanged replay takes `target` ns a step."""
    if _pace(m, c, f).step <= target:
        return 1.0
    low, high = 0.0, 1.0
    if _pace(m, _scaled(c, low), f).step > target:  # the device alone takes longer
        return 1.0
    for _ in range(12):
        middle = (low + high) / 2
        if _pace(m, _scaled(c, middle), f).step > target:
            high = middle
        else:
            low = middle
    return high
