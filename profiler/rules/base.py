"""What a rule is: one file with `NAME`, `TITLE` and `check(facts) -> Outcome`, found by its folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

# Costs that no setting removes whole. Of an ideal half the time is counted on when findings are ranked:
# nobody removes all launch overhead, while hiding a loader is one setting.
UNREACHED = ("no_launch_overhead", "no_host_work", "no_communication")


@dataclass(frozen=True)
class Evidence:
    """A number with its unit (ms, share, count, cores, samples/s, s, ...) and where it comes from."""

    text: str
    value: float | int | str | None = None
    unit: str = ""
    source: str = "probe"


@dataclass(frozen=True)
class Remedy:
    """A setting that can be tried. `setting` is the loader's or workload's own name for it."""

    setting: str
    before: Any
    after: Any

    def to_json(self) -> dict[str, Any]:
        return {"setting": self.setting, "from": self.before, "to": self.after}


@dataclass(frozen=True)
class Prediction:
    """Step time now over step time with the remedy.

    With `at_most` it is the scenario's own gain, which the remedy may not reach: there
    is no model of the remedy, and it is not scored.
    """

    scenario: str
    speedup: float
    low: float
    high: float
    at_most: bool = False


@dataclass(frozen=True)
class Finding:
    """A diagnosis. `cost_ms` per step orders those without a prediction."""

    rule: str
    title: str
    severity: str  # info, warning, error
    cost_ms: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    counter_evidence: tuple[Evidence, ...] = ()
    remedy: Remedy | None = None
    advice: str = ""  # one sentence, where no setting can be tried
    prediction: Prediction | None = None
    site: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The form of the design, section 5."""
        def items(found: tuple[Evidence, ...]) -> list[dict[str, Any]]:
            return [{"text": e.text, "value": e.value, "unit": e.unit, "source": e.source} for e in found]

        p = self.prediction
        return {
            "rule": self.rule, "title": self.title, "severity": self.severity, "cost_ms": self.cost_ms,
            "evidence": items(self.evidence), "counter_evidence": items(self.counter_evidence),
            "remedy": self.remedy.to_json() if self.remedy else None, "advice": self.advice,
            "prediction": {"scenario": p.scenario, "speedup": p.speedup, "low": p.low, "high": p.high,
                           "at_most": p.at_most} if p else None,
            "site": self.site,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Finding:
        """The finding of a stored diagnosis. KeyError or TypeError when it is none."""
        def items(found: Any) -> tuple[Evidence, ...]:
            return tuple(Evidence(e["text"], e["value"], e["unit"], e["source"]) for e in found)

        remedy, p = told["remedy"], told["prediction"]
        return cls(
            str(told["rule"]), str(told["title"]), str(told["severity"]), float(told["cost_ms"]),
            items(told["evidence"]), items(told["counter_evidence"]),
            Remedy(remedy["setting"], remedy["from"], remedy["to"]) if remedy else None, str(told["advice"]),
            Prediction(p["scenario"], p["speedup"], p["low"], p["high"], p["at_most"]) if p else None,
            told["site"])

    def beside(self, traced: Finding) -> Finding:
        """This finding of a recording with what a trace says of the same cause.

        A prediction that can be scored stays; an upper bound gives way to the replay's. A recording knows
        the settings and the cores: where it has advice instead of a remedy, none is tried.
        """
        scored = self.prediction is not None and not self.prediction.at_most
        return replace(
            self, evidence=self.evidence + traced.evidence,
            counter_evidence=self.counter_evidence + traced.counter_evidence,
            cost_ms=traced.cost_ms, remedy=self.remedy or (None if self.advice else traced.remedy),
            prediction=self.prediction if scored else traced.prediction or self.prediction,
            site=self.site or traced.site)


@dataclass(frozen=True)
class Outcome:
    """What a rule says: findings, or why it rules its cause out, or what it lacks to tell."""

    findings: tuple[Finding, ...] = ()
    ruled_out: str = ""
    lacks: str = ""


@dataclass(frozen=True)
class Rule:
    name: str
    title: str
    check: Callable[[Any], Outcome]  # Facts in profiler.rules.recording; TraceFacts in profiler.rules.trace


@cache
def rules(folder: str = "profiler.rules.recording") -> tuple[Rule, ...]:
    """Every rule in a folder, in order of name."""
    found = []
    package = importlib.import_module(folder)
    for item in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{folder}.{item.name}")
        if hasattr(module, "check"):
            found.append(Rule(module.NAME, module.TITLE, module.check))
    return tuple(found)


def ms(ns: float) -> float:
    return ns / 1e6


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def order(finding: Finding) -> tuple[float, int, float]:
    """Sorts findings by the predicted gain of their remedies, severity and cost, the largest first.

    Of an ideal without a setting that reaches it, half the time is counted.
    """
    told = finding.prediction
    gain = told.speedup if told else 1.0
    if told and (finding.remedy is None or told.scenario in UNREACHED):
        gain = 2 * gain / (gain + 1)
    return (-gain, ("error", "warning", "info").index(finding.severity), -finding.cost_ms)
