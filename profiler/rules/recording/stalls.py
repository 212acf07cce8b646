"""Steps that take far longer than the others, what they have in common, and step times that spread widely."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.pauses import Cause, cause_of
from profiler.analysis.series import BoolArray
from profiler.analysis.summary import StepSummary
from profiler.metrics import stage_title
from profiler.model import STAGES
from profiler.rules.base import Evidence, Finding, Outcome, ms, plural
from profiler.rules.words import frame_title

NAME = "stalls"
TITLE = "Uneven steps"
WORTH = 0.01  # of the steady steps' time
COSTLY = 0.05  # of it, from which single stalls with one cause are more than a note
LARGE = 0.15
WIDE = 0.5  # (p95 - p5) / median
TITLES = {"gc": "garbage collection", "save": "torch.save"}
ADVICE = {
    "gc": "Call gc.freeze() once the model is made, so that collections pass over what stays; collect "
          "between epochs, or raise the thresholds of the gc module.",
    "save": "Save less often, or in a thread from a copy of the state "
            "(torch.distributed.checkpoint.async_save does that).",
}
LOOK = "Look at what happens at these steps: checkpoints, logging, evaluation, slow files."


def check(facts: Facts) -> Outcome:
    """Stalls are steps of more than three medians.

    Where they recur every so many steps for more than 5 % of the time they count in all means, and
    this is a warning, from 15 % on an error. Of up to 5 % of the steps, without a rhythm, they are
    left out of the means: a note, which costs steady steps nothing; unless several have one known
    cause and take more than 5 % of the time.
    """
    summary = facts.summary
    if summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    stalls = summary.recurring if summary.recurring.any() else summary.stalls
    if stalls.any() and (found := _stalled(facts, summary, stalls)):
        return Outcome((found,))
    spread = summary.spread
    if spread.p5 is None or spread.p95 is None:
        return Outcome(lacks="fewer than 10 steady steps")
    if spread.p95 - spread.p5 < WIDE * spread.median or not spread.median:
        return Outcome(ruled_out=f"5 to 95 %: {ms(spread.p5):.1f} to {ms(spread.p95):.1f} ms")
    return Outcome((Finding(
        NAME, "Step times spread widely", "info", 0.0,
        evidence=(Evidence("5 % of the steps take less than", ms(spread.p5), "ms"),
                  Evidence("Median", ms(spread.median), "ms"), Evidence("Mean", ms(spread.mean), "ms"),
                  Evidence("5 % take more than", ms(spread.p95), "ms")),
        advice="After a burst of batches workers are waited for: there the mean says more than the median. "
               "Else look for other work on the machine." if facts.workers else
        "Batches may differ in size, or other programs share the machine."),))


def stalling(facts: Facts) -> str:
    """What a verdict says of stalls that recur and are no bursts of workers; "" where there are none."""
    summary = facts.summary
    if summary is None or summary.every is None or _bursts(facts, summary):
        return ""
    share = 100 * sum(summary.recurring_ns.values()) / summary.step_ns
    return f"; every {_ordinal(round(summary.every))} step stalls, {share:.0f} % of the time"


def _bursts(facts: Facts, summary: StepSummary) -> bool:
    """Batches of starved workers come several at a time: that is the loader's rhythm."""
    return bool(facts.workers) and max(STAGES, key=lambda s: summary.recurring_ns[s]) == "data"


def _stalled(facts: Facts, summary: StepSummary, stalls: BoolArray) -> Finding | None:
    steps = facts.steps.select(facts.steady.mask)
    slow, usual = steps.select(stalls), steps.select(~stalls)
    lost = float((slow.wall - summary.spread.median).sum())
    share = lost / float(steps.wall.sum())
    excess = {stage: float(slow.stages[stage].mean() - usual.stages[stage].mean()) for stage in STAGES}
    worst = max(STAGES, key=lambda stage: excess[stage])
    recurs = summary.every is not None
    if share < WORTH or (recurs and _bursts(facts, summary)):
        return None
    cause = cause_of(facts.pauses, steps, stalls)
    # A line that computes is seen most in any long step: it says what the step is, not why it is long.
    known = cause is not None and (cause.kind in TITLES or worst in ("data", "other"))
    counts = recurs or (known and cause is not None and cause.steps > 1 and share >= COSTLY)
    return Finding(
        NAME, _title(summary, len(slow), worst, cause if known else None),
        ("error" if share >= LARGE else "warning") if counts else "info",
        ms(lost) / len(steps) if counts else 0.0,
        evidence=(Evidence("Steps of more than three medians", len(slow), "count"),
                  Evidence("Longest", ms(float(slow.wall.max())), "ms"),
                  Evidence("Median step", ms(summary.spread.median), "ms"),
                  Evidence("Of the steady steps' time", share, "share"),
                  Evidence(f"More in {stage_title(worst)} than usual, per stalled step", ms(excess[worst]),
                           "ms"),
                  *_seen(cause, len(slow))),
        counter_evidence=() if counts else (Evidence(
            "They have no rhythm: other work on the machine makes such steps too"),),
        advice=ADVICE.get(cause.kind, LOOK) if cause else LOOK,
        site=(cause.site if cause else None)
        or facts.site({"data": "loader", "other": "sync"}.get(worst, worst)))


def _title(summary: StepSummary, count: int, worst: str, cause: Cause | None) -> str:
    who = plural(count, "step") + " stalled"
    if summary.every is not None:
        who = f"Every {_ordinal(round(summary.every))} step stalls"
    if cause is None:
        return f"{who} in {stage_title(worst)}"
    return f"{who}: {TITLES.get(cause.kind) or cause.site.rpartition('/')[2]}"


def _ordinal(n: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th") if n % 100 not in (11, 12, 13) else "th"
    return f"{n}{ending}"


def _seen(cause: Cause | None, stalled: int) -> list[Evidence]:
    """What the probe saw in the stalled steps."""
    if cause is None:
        return [Evidence("No collection, torch.save or line of the code was seen in half of them")]
    text = f"in {cause.steps} of {plural(stalled, 'stalled step')}"
    if cause.kind in TITLES:
        what = TITLES[cause.kind]
        return [Evidence(f"{what} {text}, mean", ms(cause.ns), "ms")]
    return [Evidence(f"Stack {text}: {' < '.join(map(frame_title, cause.lines[:4]))}")]
