"""Device memory that grows from step to step."""

from __future__ import annotations

from profiler.analysis.trace.memory.memory import CPU, growth
from profiler.rules.base import Evidence, Finding, Outcome, plural
from profiler.rules.trace.evidence import SOURCE
from profiler.rules.trace.facts import TraceFacts
from profiler.units import format_bytes

NAME = "memory"
TITLE = "Device memory"
GROWTH = 1 << 20  # bytes a step; less comes and goes with workspaces


def check(facts: TraceFacts) -> Outcome:
    """Lacks allocator events (profile_memory) of three steps; ruled out when memory does not grow."""
    facts = facts.single
    lines = [line for line in facts.timelines if line.device_type != CPU]
    if not lines:
        return Outcome(lacks=facts.lacks or "the trace has no allocator events (profile_memory=True)")
    grown = {line.name: growth(line, facts.host_windows) if facts.steps.per_step else None for line in lines}
    found = [_finding(facts, name, grows) for name, grows in grown.items() if grows and grows >= GROWTH]
    if found:
        return Outcome(tuple(found))
    if all(grows is None for grows in grown.values()):
        return Outcome(lacks="there are too few steps to see memory grow")
    return Outcome(ruled_out="it does not grow over the steps")


def _finding(facts: TraceFacts, name: str, grows: float) -> Finding:
    size = format_bytes(grows)
    return Finding(
        NAME, f"Memory of {name} grows by {size} a step", "warning",
        evidence=(Evidence("Lowest point of a step above that of the step before it, median of "
                           f"{plural(len(facts.steps), 'step')}", size, source=SOURCE),),
        advice="Something keeps tensors of every step: a list of losses without .item() or .detach(), "
               "a graph that is kept.")
