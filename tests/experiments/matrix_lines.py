"""Cases of a matrix, and what came of them, made up."""

from __future__ import annotations

from typing import Any

from profiler.experiments.matrix.cases import CONTROL, FAULT, HEALTHY, Case


def fault_case(name: str = "few_workers", verdict: str = "input_bound", rule: str = "input_bound") -> Case:
    return Case(FAULT, name, (verdict,), rule)


CONTROL_CASE = Case(CONTROL, "threads=1", (HEALTHY,))


def line(case: Case, verdict: str = "", rules: tuple[str, ...] = (), right: bool = True, repeat: int = 1,
         state: str = "told", seconds: float = 9.0, others: float = 0.0) -> dict[str, Any]:
    return {"case": case.to_json(), "repeat": repeat, "state": state, "verdict": verdict or None, "also": [],
            "rules": list(rules), "right": right, "why": "" if right else "another", "versions": {},
            "seconds": seconds, "others": others}
