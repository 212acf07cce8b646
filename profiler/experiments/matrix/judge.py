"""Whether a diagnosis is the one that a case states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.experiments.matrix.cases import CONTROL, FAULT, HEALTHY, Case
from profiler.rules.decision import GAIN

FIRST = 2  # of the findings that warn: a fault is named among so many
LOUD = ("warning", "error")
WORTH = GAIN - 1  # share of the step, or predicted gain, above which a finding blames something


def warnings(told: Mapping[str, Any]) -> list[str]:
    """Rules of the findings with severity warning or error, in their order, from a diagnosis as JSON."""
    return list(dict.fromkeys(f["rule"] for f in told["findings"] if f["severity"] in LOUD))


def above_the_line(told: Mapping[str, Any]) -> list[str]:
    """Rules of the findings that blame something: a warning or error, a cost or predicted gain above 5 %.

    What says that the run computes blames nothing.
    """
    step = told["step_ms"] or {}
    whole = step.get("usual") or step.get("median") or 0.0

    def blames(finding: Mapping[str, Any]) -> bool:
        gain = (finding["prediction"] or {}).get("speedup", 1.0)
        return (finding["severity"] in LOUD or gain > GAIN
                or (bool(whole) and finding["cost_ms"] > WORTH * whole))

    return list(dict.fromkeys(f["rule"] for f in told["findings"] if f["rule"] != HEALTHY and blames(f)))


def wrong(case: Case, told: Mapping[str, Any]) -> str:
    """Why a diagnosis is not the one that the case states; "" when it is.

    Always: the verdict is (one of) the stated. For a fault its rule's finding is also first or
    second among those of severity warning or error. For a control also no finding warns, and none
    has a cost or a predicted gain above 5 % of the step. Of a labelled trace it is the verdict alone:
    several costs may be worth a finding in it, which precision and recall of the rules count.
    """
    if told["verdict"] not in case.verdicts:
        return f"verdict {told['verdict']}, not {' or '.join(case.verdicts)}"
    if case.kind == FAULT and case.rule not in warnings(told)[:FIRST]:
        return f"{case.rule} is not among the first {FIRST} of {', '.join(warnings(told)) or 'no'} findings"
    if case.kind == CONTROL and (blamed := above_the_line(told)):
        return f"blames {', '.join(blamed)}"
    return ""
