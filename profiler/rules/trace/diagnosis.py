"""The diagnosis of traces: verdict, partition, predictions and findings. Definitions, section 5."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from profiler.analysis.trace.ranks.ranks import Ranks, ranks
from profiler.analysis.trace.ranks.straggler import Straggler, straggler
from profiler.analysis.trace.windows import of_processes
from profiler.rules.base import Finding, order, rules
from profiler.rules.decision import Decision
from profiler.rules.trace import device_tables, memory_tables, numbers, sentences, tables
from profiler.rules.trace.facts import NOT_ASKED, TraceFacts
from profiler.trace.model import Trace


@dataclass(frozen=True)
class TraceDiagnosis:
    """What holds a run back, from its traces. `shown` is the process that the verdict is about."""

    source: str
    every: tuple[TraceFacts, ...]
    shown: TraceFacts

    @cached_property
    def decision(self) -> Decision:
        """That of the shown process; what holds other ranks up is named as well, for all wait for them."""
        own = self.shown.decision
        others = [word for facts in self.every if facts is not self.shown
                  for word in (facts.decision.verdict, *facts.decision.also)]
        also = dict.fromkeys(word for word in (*own.also, *others)
                             if word not in (own.verdict, "unknown", "compute_bound"))
        return replace(own, also=tuple(also))

    @cached_property
    def ranks(self) -> Ranks | None:
        """Collectives of several processes, matched; None for one."""
        return ranks([facts.process for facts in self.every]) if len(self.every) > 1 else None

    @cached_property
    def straggler(self) -> Straggler | None:
        """Who holds the others up, with a margin, or nobody; None for one process."""
        slowest = max((facts.step_ns for facts in self.every if facts.step_ns is not None), default=None)
        return None if self.ranks is None else straggler(self.ranks, slowest)

    @property
    def verdict(self) -> str:
        return self.decision.verdict

    @cached_property
    def _outcomes(self) -> list[tuple[Any, Any]]:
        return [(rule, rule.check(self.shown)) for rule in rules("profiler.rules.trace")]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """By the predicted gain of their remedies, the largest first."""
        return tuple(sorted((f for _, outcome in self._outcomes for f in outcome.findings), key=order))

    def to_json(self) -> dict[str, Any]:
        """The form of the design, section 5, and tables of what the trace holds. None: not known."""
        facts, decision = self.shown, self.decision
        return {
            "schema": 1, "source": self.source, "verdict": decision.verdict, "also": list(decision.also),
            "confidence": decision.confidence, "reason": decision.reason,
            "headline": sentences.headline(facts), "gain": decision.gain,
            "device": numbers.device(facts), "rank": facts.trace.rank,
            "steps": numbers.steps(facts), "step_ms": numbers.step_ms(facts),
            "stages_ms": None, "estimate_ms": None, "device_ms": {}, "lag_ms": {}, "exposed_data_ms": None,
            "throughput": None, "whole_run": None, "ranks": numbers.ranks(self.every), "live": {},
            "window_ms": facts.shares.window / 1e6 if not facts.lacks else None,
            "partition_ms": numbers.partition_ms(facts), **tables.partition(facts),
            "gpu_data_incomplete": numbers.incomplete(facts),
            "what_if": numbers.what_if(facts), "replay_error": facts.replay.error,
            "replay": numbers.replay(facts),
            "findings": [finding.to_json() for finding in self.findings],
            "ruled_out": [{"rule": rule.title, "text": out.ruled_out}
                          for rule, out in self._outcomes if out.ruled_out],
            "lacks": [{"rule": rule, "text": text} for rule, text in self._lacks()],
            **self._tables(), "traces": [numbers.trace(part) for f in self.every for part in f.parts or (f,)],
            "notes": list(sentences.notes(facts, self.every, self.straggler)),
        }

    def _lacks(self) -> list[tuple[str, str]]:
        """What could not be told, by title."""
        found = [(rule.title, out.lacks) for rule, out in self._outcomes if out.lacks]
        if not self.shown.what_if and not self.shown.lacks:
            found += [(what, NOT_ASKED) for what in self.shown.replayed]
        return found

    def _tables(self) -> dict[str, Any]:
        """One key a table; None where the trace has nothing of the kind."""
        facts = self.shown
        return {
            "kernels": tables.kernels(facts), "operators": tables.operators(facts),
            "modules": tables.modules(facts), "communication": tables.communication(facts),
            "waiting": tables.waiting(self.ranks, self.straggler), "launches": device_tables.launching(facts),
            "queue": device_tables.queues(facts), "copies": device_tables.copied(facts),
            "devices": device_tables.busy(facts), "gaps": device_tables.gaps(facts),
            "critical_path": device_tables.critical(facts), "memory": memory_tables.memory(facts),
            "efficiency": memory_tables.efficiency(facts), "roofline": memory_tables.roofs(facts),
        }


def diagnose(traces: Sequence[Trace], source: str, what_if: bool = True,
             scale_to_ns: Mapping[int, int] | None = None,
             processes: Sequence[Hashable] | None = None, printed: str = "",
             cpu_ns: Mapping[int, tuple[float, float]] | None = None) -> TraceDiagnosis:
    """Of at least one trace. With several the verdict is of the process whose own bottleneck costs most.

    `scale_to_ns`: step time measured without the profiler, by number of the trace. `processes`: of
    each trace the process where a recording tells, else None; its profiler windows are pooled.
    `printed`: what the command printed, where that was recorded. `cpu_ns`: by number of the trace the
    CPU time of the loop's thread in a step, with the profiler and without.
    """
    known = scale_to_ns or {}
    every = []
    for group in of_processes(traces, processes):
        scale = next((known[k] for k in group if k in known), None)
        cpu = next((cpu_ns[k] for k in group if k in cpu_ns), None) if cpu_ns else None
        every.append(TraceFacts.of([traces[k] for k in group], what_if, scale, printed, cpu))
    return TraceDiagnosis(source, tuple(every), max(every, key=_weight))


def _weight(facts: TraceFacts) -> tuple[bool, float, float]:
    """The gain where it is predicted, else the share of what the verdict names."""
    word = facts.decision.verdict
    window = facts.shares.window
    cost = facts.cost(word) / window if window and word not in ("unknown", "compute_bound") else 0.0
    return word != "unknown", facts.decision.gain, cost
