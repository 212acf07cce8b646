"""Many small operators or kernels, each of which costs more to call than to run: only a trace can tell.

What is said of them with a trace is in profiler.rules.trace.launch_bound. Counting operators without a
profiler would take a hook around each of them, which costs more than a small one does.
"""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Outcome

NAME = "launch_bound"
TITLE = "Launch overhead"


def check(facts: Facts) -> Outcome:
    """Lacks a trace window: stages do not show how many operators fill them."""
    if facts.summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    return Outcome(lacks="no trace window was recorded, in which operators are counted (--trace-steps 8)")
