"""The diagnosis of a run from stages, device lag and live signals. Definitions, section 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from profiler.analysis.facts import Facts, gather, together
from profiler.analysis.steps import how_many, step_processes, training_process
from profiler.rules.base import Finding, order, rules
from profiler.rules.decision import FULL, GAIN, LARGE, NEARLY, SURE, Decision
from profiler.rules.notes import headline, notes
from profiler.rules.numbers import device, ranks, step_ms, throttling, throughput, whole
from profiler.rules.recording.host_bound import doubt
from profiler.rules.recording.noisy_machine import crowded_out, disturbed
from profiler.rules.recording.stalls import stalling
from profiler.rules.trace import stored
from profiler.rules.vendor import in_words_of
from profiler.units import format_ms

if TYPE_CHECKING:
    from profiler.run.reader import Run

WORDS = {"input": "input_bound", "transfer": "transfer_bound", "host": "host_bound",
         "communication": "communication_bound"}
WITHOUT = {"input": "with batches ready", "transfer": "without copies of the batch",
           "host": "with a host that costs nothing", "communication": "without waiting for the other ranks"}


@dataclass(frozen=True)
class Diagnosis:
    """What holds the run back. `facts` are those of the process that the verdict is about."""

    source: str
    decision: Decision
    headline: str
    facts: Facts
    findings: tuple[Finding, ...]
    ruled_out: tuple[tuple[str, str], ...]  # rule's title, why
    lacks: tuple[tuple[str, str], ...]  # rule's title, what it lacks to tell
    notes: tuple[str, ...]
    others: tuple[tuple[Facts, Decision], ...] = field(default=())  # every rank, where there are several
    trace: Mapping[str, Any] | None = None  # what the run's traces say, in its JSON form
    imported: bool = False  # the run was made from traces and holds nothing else

    @property
    def verdict(self) -> str:
        return self.decision.verdict

    def to_json(self) -> dict[str, Any]:
        """The form of the design, section 5. What needs a trace is None without one."""
        facts, summary = self.facts, self.facts.summary
        stages = {name: ns / 1e6 for name, ns in summary.stages.items()} if summary else None
        shares = facts.estimate
        estimate = {name: float(getattr(shares, name)) / 1e6
                    for name in ("input", "transfer", "compute", "host", "communication")} if shares else None
        told = {
            "schema": 1, "source": self.source, "verdict": self.verdict, "also": list(self.decision.also),
            "confidence": self.decision.confidence, "reason": self.decision.reason, "headline": self.headline,
            "device": device(facts),
            "steps": {"count": summary.steady if summary else 0,
                      "total": summary.total if summary else int(facts.steps.counted.sum()), "rule": "probe",
                      "kind": facts.steady.kind, "warm_up": facts.steady.warm_up,
                      "left_out": dict(facts.steady.left_out)},
            "step_ms": step_ms(summary), "stages_ms": stages, "estimate_ms": estimate,
            "device_ms": {k: v / 1e6 for k, v in summary.device.items()} if summary else {},
            "lag_ms": {k: v / 1e6 for k, v in summary.lag.items()} if summary else {},
            "exposed_data_ms": summary.exposed / 1e6 if summary and summary.exposed is not None else None,
            "throughput": throughput([f for f, _ in self.others] or [facts]),
            "whole_run": whole(facts), "ranks": ranks(self.others), "live": dict(facts.live),
            "throttling": throttling(facts),
            "partition_ms": None, "what_if": None, "replay_error": None,
            "findings": [finding.to_json() for finding in self.findings],
            "ruled_out": [{"rule": rule, "text": text} for rule, text in self.ruled_out],
            "lacks": [{"rule": rule, "text": text} for rule, text in self.lacks],
            "notes": list(self.notes),
        }
        if self.trace is None:
            return told
        return {**self.trace, "source": self.source} if self.imported else told | stored.beside(self.trace)


def diagnose(run: Run, t0_ns: int | None = None, t1_ns: int | None = None,
             trace: Mapping[str, Any] | None = None) -> Diagnosis:
    """Of the whole run, or of the steps that ended in [t0_ns, t1_ns].

    With several ranks the verdict is that of the rank whose own bottleneck costs most:
    the others wait for it. `trace`: what the run's traces say; of a whole run what is
    stored in it, where nothing is given.
    """
    if trace is None and t0_ns is None and t1_ns is None:
        trace = stored.stored(run)
    found = _recorded(run, t0_ns, t1_ns)
    if trace is not None:
        return _traced(run, found, trace)
    if t0_ns is not None or t1_ns is not None or run.state == "recording" or not stored.attachments(run):
        return found
    unknown = Decision("unknown", reason=stored.NOT_ANALYSED)
    return replace(found, decision=unknown if run.meta.get("kind") == "import" else found.decision,
                   notes=(*found.notes, stored.NOT_ANALYSED[:1].upper() + stored.NOT_ANALYSED[1:]))


def _traced(run: Run, found: Diagnosis, trace: Mapping[str, Any]) -> Diagnosis:
    """A diagnosis with what the run's traces say. They decide where they have a device and are complete.

    Where the CPU is the device they add what its stages cannot tell: the profiler's cost is the CPU's too.
    """
    if run.meta.get("kind") == "import":
        return replace(
            found, decision=stored.decision(trace), headline=str(trace["headline"]),
            findings=stored.findings(trace), trace=trace, imported=True,
            notes=tuple(map(str, trace["notes"])), ruled_out=_causes(trace["ruled_out"]),
            lacks=_causes(trace["lacks"]))
    notes = tuple(dict.fromkeys((*found.notes, *(f"Trace: {note}" for note in trace["notes"]))))
    speaks = stored.speaks(trace)
    titles = {rule.name: rule.title for rule in rules("profiler.rules.trace")
              if speaks or rule.name in stored.ON_CPU}
    ruled = tuple((title, why) for title, why in _causes(trace["ruled_out"]) if title in titles.values())
    traced = tuple(finding for finding in stored.findings(trace) if finding.rule in titles)
    known = {title for title, _ in ruled} | {titles[finding.rule] for finding in traced}
    if speaks:
        found = replace(found, decision=stored.decision(trace), headline=str(trace["headline"]))
    return replace(
        found, trace=trace, notes=notes, findings=stored.joined(found.findings, traced),
        ruled_out=(*ruled, *((title, why) for title, why in found.ruled_out if title not in known)),
        lacks=tuple((title, why) for title, why in found.lacks if title not in known))


def _causes(told: list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((item["rule"], item["text"]) for item in told)


def _recorded(run: Run, t0_ns: int | None, t1_ns: int | None) -> Diagnosis:
    """From stages, device lag and live signals."""
    loops = training_processes(run)
    gathered = together([gather(run, process, t0_ns, t1_ns) for process in loops])
    every = [(facts, decide(facts)) for facts in gathered]
    facts, decision = max(every, key=lambda pair: (pair[1].verdict != "unknown", pair[1].gain))
    outcomes = [(rule, in_words_of(facts.device, rule.check(facts))) for rule in rules()]
    findings = sorted((f for _, outcome in outcomes for f in outcome.findings), key=order)
    return Diagnosis(
        source=str(run.path), decision=decision, headline=headline(facts, decision.verdict), facts=facts,
        findings=tuple(findings),
        ruled_out=tuple((rule.title, out.ruled_out) for rule, out in outcomes if out.ruled_out),
        lacks=tuple((rule.title, out.lacks) for rule, out in outcomes if out.lacks),
        notes=(*_pace(every, facts), *notes(run, facts)), others=tuple(every) if len(every) > 1 else ())


def _pace(every: list[tuple[Facts, Decision]], facts: Facts) -> tuple[str, ...]:
    if len(every) < 2:
        return ()
    who = f"rank {facts.rank}" if facts.rank is not None else f"process {facts.process and facts.process.pid}"
    return (f"Of {len(every)} loops {who} is shown, whose own bottleneck costs most",)


def training_processes(run: Run) -> list[int | None]:
    """Every process that trains; where none does the one with most steps; [None] without any step."""
    found: list[int | None] = []
    for process in step_processes(run):
        if how_many(run, process)[0]:
            found.append(process)
    return found or [training_process(run)]


def decide(facts: Facts) -> Decision:
    """The verdict word of one process."""
    shares = facts.estimate
    if facts.lacks or shares is None or facts.summary is None:
        return Decision("unknown", reason=facts.lacks or "no steady step")
    if not shares.measured and "gpu.util" not in facts.live:
        return Decision("unknown", reason="the loop runs on a GPU of which neither device times nor "
                                          "utilization are known: what the host waits for cannot be told")
    unclear, aside = doubt(facts), stalling(facts) + crowded_out(facts)
    gains = {name: shares.gain(name) for name in WORDS if name != "host" or not unclear}
    first = max(gains, key=lambda name: gains[name])
    large = [name for name in gains if shares.share(name) > LARGE]
    if gains[first] > GAIN:
        near = [name for name in gains if gains[name] - 1 >= NEARLY * (gains[first] - 1)]
        also = tuple(WORDS[name] for name in gains if name != first and (name in near or name in large))
        best = shares.step_ns / gains[first]
        reason = (f"{WITHOUT[first]} a step would take {format_ms(best)} at best, "
                  f"instead of {format_ms(shares.step_ns)}{aside}")
        return Decision(WORDS[first], also, _confidence(facts, gains[first] >= SURE), reason, gains[first])
    share = shares.share("compute")
    rest = f"nothing {'that waits' if unclear else 'else'} would give more than 5 %"
    if share >= FULL:
        reason = f"compute takes {100 * share:.0f} % of a step, and {rest}{aside}"
        return Decision("compute_bound", (), _confidence(facts, True), reason, gains[first])
    if shares.share("host") > LARGE and unclear:
        return Decision("unknown", reason=unclear)
    return Decision("unknown", reason=f"compute takes {100 * share:.0f} % of a step, below 85 %, and {rest}"
                                      f"{aside}")


def _confidence(facts: Facts, clear: bool) -> str:
    """Never high without a trace, and low where other programs had the cores."""
    sure = (clear and facts.estimate is not None and facts.estimate.measured and facts.steady.settled
            and facts.summary is not None and facts.summary.steady >= 10 and not disturbed(facts))
    return "medium" if sure else "low"
