"""The device waits for launches: many small kernels, each of which costs the host more than the device.

On a CPU the same loop shows as operators of a few us each. Measured in a trace window: ordinary small
models spend 14 to 16 % of their CPU time on operators of less than 20 us and what calls them, and 5,000
of these in a step make 63 to 67 %, on a busy machine as on a quiet one. The profiler's cost is in both;
what it adds is taken off the cost that is told, not off what decides: in a window that is slow as a whole
too much would be taken off.
"""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.breakdown.partition import launching_times
from profiler.analysis.trace.code.crumbs import SHORT_NS, Crumbs, crumbs
from profiler.analysis.trace.intervals import intersect
from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.trace.evidence import (
    GRAVE,
    SOURCE,
    at_most,
    classes,
    doubts,
    idle,
    line_at,
    severity,
    site,
    small,
    unit,
)
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.settings import against_launches
from profiler.trace.model import Ints
from profiler.units import format_count

NAME = "launch_bound"
TITLE = "Launch overhead"
SCENARIO = "no_launch_overhead"
FILLED = 0.4  # of a profiled step on a CPU, in calls of short operators


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when launching takes less than 3 % of the step and its removal gives less."""
    if not facts.on_device and not facts.lacks:
        return _on_cpu(facts)
    if said := small(facts, NAME, SCENARIO):
        return said
    evidence = [Evidence(f"Idle while the host launches, mean per {unit(facts)}", ms(facts.shares.launching),
                         "ms", SOURCE), *classes(facts, "queued")]
    host = facts.trace.host
    rows = np.flatnonzero(facts.joined.kernel_launch & facts.in_step)
    if len(rows):
        evidence.append(Evidence(f"Kernel launches per {unit(facts)}", len(rows) / max(len(facts.windows), 1),
                                 "count", SOURCE))
        evidence.append(Evidence("Median launch call", float(np.median((host.end - host.start)[rows])), "ns",
                                 SOURCE))
    median = facts.kernel_summary.median_ns
    if median is not None:
        evidence.append(Evidence("Median kernel", median, "ns", SOURCE))
    return Outcome((Finding(
        NAME, "The device waits for launches", severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)),
        evidence=tuple(evidence), counter_evidence=doubts(facts, SCENARIO),
        remedy=against_launches(facts, rows),
        advice="Give the device more work per launch: a larger batch, torch.compile, CUDA graphs, "
               "a fused or foreach optimizer.",
        prediction=at_most(facts, SCENARIO), site=_line(facts, rows)),))


def _on_cpu(facts: TraceFacts) -> Outcome:
    """Calls of operators that do little, by the CPU time of the loop's thread where that was measured."""
    found, steps = crumbs(facts.owners, facts.steps.thread, facts.in_step), max(len(facts.windows), 1)
    cost = found.span_ns / steps
    inside, beside = facts.cpu_ns or (facts.shares.window, facts.shares.window)
    if cost < FILLED * inside or not cost:
        return Outcome(ruled_out=f"{found.count / steps:.0f} short operators take {ms(cost):.1f} of "
                                 f"{ms(inside):.1f} ms per profiled {unit(facts)}")
    cost = max(0.0, cost - max(0.0, inside - beside) * found.events / max(found.every, 1))
    count = format_count(round(found.count / steps))
    return Outcome((Finding(
        NAME, f"{count} operators of a few microseconds", "error" if cost >= GRAVE * beside else "warning",
        ms(cost),
        evidence=_of_crumbs(facts, found, steps), counter_evidence=_against(facts),
        advice="Do the same in fewer calls: whole tensors in place of numbers and loops, foreach or fused "
               "operators, a larger batch, torch.compile.",
        site=site(facts, found.rows)),))


def _of_crumbs(facts: TraceFacts, found: Crumbs, steps: int) -> tuple[Evidence, ...]:
    host, names, per = facts.trace.host, facts.trace.names, f"per {unit(facts)}"
    codes, counts = np.unique(host.name[found.rows], return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:2].tolist()
    short = f"Operators of less than {SHORT_NS // 1000} us, {per}"
    return (Evidence(short, round(found.count / steps), "count", SOURCE),
            Evidence(f"Operators in all, {per}", round(found.of / steps), "count", SOURCE),
            Evidence("Median of the short ones", found.median_ns, "ns", SOURCE),
            Evidence(f"Time in them, mean {per}", ms(found.time_ns / steps), "ms", SOURCE),
            Evidence("With the calls that lead to the next one", ms(found.span_ns / steps), "ms", SOURCE),
            *(Evidence(f"{names[codes[k]]} among them, {per}", round(counts[k] / steps), "count", SOURCE)
              for k in frequent))


def _against(facts: TraceFacts) -> tuple[Evidence, ...]:
    if facts.cpu_ns is None:
        return (Evidence("The profiler's own cost is in it, about as much again", source=SOURCE),)
    inside, beside = facts.cpu_ns
    return (Evidence(f"What the profiler adds is taken off: with it the thread runs {ms(inside):.1f} ms a "
                     f"step, without it {ms(beside):.1f} ms", source="probe"),)


def _line(facts: TraceFacts, rows: Ints) -> str | None:
    """Where the loop is while the device idles between launches, else where launches take most time."""
    times = intersect(idle(facts, "host"), launching_times(facts.joined, facts.steps))
    return line_at(facts, times) or site(facts, rows)
