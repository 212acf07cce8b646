"""Other programs have the cores: step times are not this loop's alone."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.recording.threads import SOURCE, hidden_by_device, waits

NAME = "noisy_machine"
TITLE = "Other programs"
WORTH = 0.05  # of the step: the wait for a core that other programs cause
GRAVE = 0.15


def _cost(facts: Facts) -> float:
    """ns a step that the loop waits for a core which other programs have; 0 where it was not measured."""
    if facts.summary is None or facts.crowding is None:
        return 0.0
    return hidden_by_device(facts, facts.crowding.others * facts.summary.step_ns)


def disturbed(facts: Facts) -> bool:
    """Whether other programs cost so much of the step that its stages tell little of the loop alone."""
    return facts.summary is not None and _cost(facts) >= GRAVE * facts.summary.step_ns > 0


def crowded_out(facts: Facts) -> str:
    """What a verdict says where the loop has no core for a good part of the step; "" elsewhere."""
    if facts.summary is None or facts.crowding is None:
        return ""
    step = facts.summary.step_ns
    whose = {"other programs": _cost(facts),
             "the program's own threads": hidden_by_device(facts, facts.crowding.own * step)}
    return "".join(f"; {who} keep the loop off the cores for {100 * ns / step:.0f} % of it"
                   for who, ns in whose.items() if ns >= GRAVE * step > 0)


def check(facts: Facts) -> Outcome:
    """Lacks the scheduler's counts; ruled out where others cost less than 5 % of the step."""
    summary, crowd = facts.summary, facts.crowding
    if summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if crowd is None or crowd.busy is None:
        return Outcome(lacks="how long the loop's thread waits for a core was not measured")
    cost = _cost(facts)
    if cost < WORTH * summary.step_ns or not cost:
        return Outcome(ruled_out=f"{ms(cost):.1f} of {ms(summary.step_ns):.1f} ms per step, others keep "
                                 f"{crowd.busy:.1f} cores busy")
    return Outcome((Finding(
        NAME, "Other programs take the cores", "warning" if disturbed(facts) else "info",
        ms(cost),
        evidence=(*waits(facts, crowd),
                  Evidence("Cores that other programs keep busy", crowd.busy, "cores", "host"),
                  Evidence("Cores that the program may use", facts.cores, "count", "host"),
                  Evidence("Its threads that run or wait for a core", round(crowd.wanted, 1), "threads",
                           SOURCE)),
        counter_evidence=(Evidence("It is no fault of the loop: alone on the machine it would not wait"),),
        advice="Measure again with the machine to itself, or give the loop cores of its own (taskset, a "
               "container's share)."),))
