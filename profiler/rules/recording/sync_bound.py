"""Reads of scalars that wait for the device. Without a trace nobody can say that they cost anything.

A read under a busy queue only moves where the host waits. It costs what the device then idles, and that a
replay of a trace tells: so this rule rules out, or says that it lacks the trace; rules/trace/sync_bound.py
blames.
"""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Outcome, ms
from profiler.rules.decision import FULL

NAME = "sync_bound"
TITLE = "Synchronisation"
FEW = 0.03  # of the step inside reads: with less there is nothing to gain


def check(facts: Facts) -> Outcome:
    """Lacks a trace where reads take time; ruled out on a CPU, and where the device works all the time."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.on_device:
        return Outcome(ruled_out="the CPU is the device: nothing is synchronised")
    if summary.syncs is None or summary.sync is None:
        return Outcome(lacks="blocking reads were not counted")
    text = (f"{summary.syncs:.1f} blocking reads, {ms(summary.sync):.1f} of {ms(summary.step_ns):.1f} ms "
            "per step")
    if not summary.syncs:
        return Outcome(lacks="reads are not counted once something is compiled") if facts.readings.compiled \
            else Outcome(ruled_out="no blocking read of a scalar was seen")
    if shares.measured and shares.share("compute") >= FULL:
        return Outcome(ruled_out=f"{text}: the device works meanwhile")
    if summary.sync < FEW * summary.step_ns:
        return Outcome(ruled_out=text)
    return Outcome(lacks=f"whether the device idles after them takes a trace ({text}): "
                         "record with --trace-steps")
