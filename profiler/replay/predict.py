"""What a step would take without each cost, and how far the replay that says so can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steady import Steady
from profiler.analysis.trace.steps import Steps
from profiler.replay import scenarios, work
from profiler.replay.build import Columns, Model, columns, model, program
from profiler.replay.fit import Measured, fit
from profiler.replay.paces import Pace, measured, paces
from profiler.replay.result import Replay, Scenario
from profiler.replay.run import run
from profiler.replay.scenarios import Change
from profiler.replay.work import Work

BUDGET = 80_000       # operations of one replay
TRUSTED = 0.05        # error of the unchanged replay up to which predictions are given
APART = 0.02          # by which ratios of means and medians differ when they tell different stories
STORIES = 0.1         # by which they do so that both have to be told
SAME = 0.0005         # difference of the bounded and the unbounded error from which both are replayed
SOME = 0.01           # gain from which it matters that the loader might not keep up
HALVINGS = 12         # in search of the factor of host costs
PROFILED = "host costs include the profiler's own"
LOADER_UNKNOWN = "how fast the loader could be is unknown: it never made the loop wait"
GAP_UNKNOWN = "how closely activities can follow one another is not seen: hardly any was queued"
AMBIGUOUS = "some stream waits have several possible causes"


@dataclass(frozen=True)
class _Variant:
    """One way to read the trace, and its unchanged replay. The first of several is the one that is told."""

    m: Model
    c: Columns
    depth: int
    unseen: bool
    pace: Pace

    @classmethod
    def of(cls, m: Model, measured: Measured, bounded: bool) -> _Variant:
        f = fit(measured, bounded)
        return cls._with(m, columns(m, f), f.depth, f.unseen)

    @classmethod
    def _with(cls, m: Model, c: Columns, depth: int, unseen: bool) -> _Variant:
        return cls(m, c, depth, unseen, paces(run(program(m, c, depth, keep=True)), m.segments))

    def scaled(self, scale: float) -> _Variant:
        """With host costs multiplied; waits keep their tails and activities their durations."""
        return self._with(self.m, self.c.scaled(scale), self.depth, self.unseen)

    def changed(self, change: Change, w: Work) -> Pace:
        """Steps of the changed replay."""
        c = change(self.m, w, self.c)
        return self.pace if c.same(self.c) else paces(run(program(self.m, c, self.depth)), self.m.segments)


def predict(j: Joined, steps: Steps, steady: Steady, *, budget: int = BUDGET,
            scale_to_ns: int | None = None) -> Replay:
    """Replay the steps as they were and under every scenario.

    `budget`: operations of one replay at most, but at least one step is replayed.
    `scale_to_ns`: step time measured without the profiler, which host costs are scaled to.
    """
    if not steps.per_step or not steps.counted.any():
        return Replay.none("the trace has no steps")
    m = model(j, steps, budget)
    start = m.measured()
    variants = [_Variant.of(m, start, bounded) for bounded in (True, False)]
    truth = measured(steady, m.segments)
    if truth.step <= 0:
        return Replay.none("the steps have no length")
    error, unbounded = (abs(v.pace.of(truth) / truth.step - 1) for v in variants)
    if abs(error - unbounded) < SAME and not variants[0].unseen:  # nothing that matters is cut by the bounds
        variants.pop()
    notes = [] if scale_to_ns else [PROFILED]
    if m.bound.ambiguous:
        notes.append(AMBIGUOUS)
        closest = m.closest()
        variants.append(_Variant.of(closest, closest.measured(), True))
    scale = _scale(variants[0], scale_to_ns) if scale_to_ns else 1.0
    if scale != 1.0:
        variants = [v.scaled(scale) for v in variants]
    result = Replay(round(variants[0].pace.step), round(truth.step), error, unbounded,
                    int(m.segments.counted.sum()), scale=scale, notes=tuple(notes))
    if error > TRUSTED:
        why = (f"the unchanged replay misses the measured step time by {100 * error:.1f} %, "
               f"more than {100 * TRUSTED:.0f} %")
        return replace(result, withheld=why)
    w = work.find(m)
    names = scenarios.SCENARIOS if len(j.trace.device) else ("no_input_wait",)
    # The drawn steps may differ a little from all of them; their ratio holds for the step that is told.
    step = variants[0].pace.step if scale_to_ns else steady.step_ns
    return replace(result, scenarios=tuple(_scenario(name, variants, w, error, step) for name in names))


def _scenario(name: str, variants: list[_Variant], w: Work, error: float, step: float) -> Scenario:
    """One scenario of a step of `step` ns.

    Its interval holds every variant, and what one step more or less would change.
    """
    first = variants[0]
    paced = [v.changed(scenarios.SCENARIOS[name], w) for v in variants]
    ratios = [v.pace.over(pace) for v, pace in zip(variants, paced)]
    speedup = ratios[0]
    also = [(reading, first.pace.over(first.changed(change, w)))
            for reading, change in scenarios.readings(name, first.m, w)]
    mean = first.pace.mean_over(paced[0])
    if abs(mean / speedup - 1) > APART:
        also.append(("mean instead of median steps", mean))
    span = ratios + first.pace.spread(paced[0])
    notes = []
    if abs(mean / speedup - 1) > STORIES:
        notes.append(f"{mean:.2f} by mean steps")
    if name == "no_launch_overhead" and first.unseen and speedup > 1 + SOME:
        notes.append(GAP_UNKNOWN)
    if name != "no_input_wait" and first.m.loader.hidden and max([speedup, *(s for _, s in also)]) > 1 + SOME:
        notes.append(LOADER_UNKNOWN)
    return Scenario(name, round(step / speedup), speedup, min(span) * (1 - error), max(span) * (1 + error),
                    "; ".join(notes), tuple(also))


def _scale(unchanged: _Variant, target: int) -> float:
    """Factor of host costs, at most 1, with which the unchanged replay takes `target` ns a step."""
    if unchanged.pace.step <= target or unchanged.scaled(0.0).pace.step > target:
        return 1.0  # as fast already, or the device alone takes longer
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if unchanged.scaled(middle).pace.step > target:
            high = middle
        else:
            low = middle
    return high
