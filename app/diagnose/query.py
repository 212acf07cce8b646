"""The diagnosis of the open run, put together for the screen. On the worker; free of Qt and of widgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from app.diagnose import ceilings, code, ratios, step
from app.diagnose.data import DiagnoseData, FindingData, Line, PartRow, WhatIfRow
from app.live.state import Live
from app.live.verdict import STAGE, VerdictData, before_steps, recent, remedy_text, warming_up
from app.selection import Place
from profiler.errors import harmless
from profiler.experiments.change import testable, unfit
from profiler.experiments.program import Program, recorded_program
from profiler.metrics import stage_title
from profiler.report.trace import device_title
from profiler.rules.base import Finding, plural
from profiler.rules.trace import stored
from profiler.rules.verdict import Diagnosis, diagnose
from profiler.rules.words import (
    CLASS_STAGES,
    WEIGHTS,
    class_title,
    evidence,
    prediction,
    scenario_title,
    verdict_title,
)
from profiler.run.reader import Run
from profiler.units import (
    format_count,
    format_ms,
    format_number,
    format_ratio,
    format_share,
    format_time,
    ms_decimals,
)

# Whose colour a finding wears, by its rule; what has none is grey.
STAGES = STAGE | {
    "prefetch": "data", "epoch_start": "data", "pcie_slot": "h2d", "tensor_cores": "forward",
    "memory_bandwidth": "forward", "occupancy": "forward", "convolutions": "forward",
    "throttling": "forward", "shapes": "forward"}
TOGETHER = 4  # causes with the same reason are told in one row from so many on
HEADROOM = "compute_half"  # never competes for the verdict


def query(run: Run, live: Live, measured: Sequence[Mapping[str, Any]] = ()) -> DiagnoseData:
    """`measured`: results of tests that could not be kept in the run file."""
    recording = run.state == "recording"
    if not recording:
        run.refresh()  # experiments add to it
    if recording or run.meta.get("kind") == "monitor":
        live.refresh(run)
        if (early := before_steps(run, live)) is not None and (recording or not early.settled):
            return _early(run, early, recording)
    found = recent(run, live) if recording and len(live.steps) else diagnose(run)
    if (early := warming_up(run, found.facts)) is not None:
        return _early(run, early, recording)
    told = found.to_json()
    program = recorded_program(run.meta)
    tests = [*run.results("experiment"), *measured]
    own = stored.attachments(run)
    if own and found.trace is None and run.meta.get("kind") == "import" and not recording:
        return _unread(run, told, len(own))
    part = _partition(told) or _stages(told)
    replay = told.get("replay") or {}
    return DiagnoseData(
        word=found.verdict, title=verdict_title(found.verdict), stage=STAGE.get(found.verdict, ""),
        also=", ".join(verdict_title(word).lower() for word in found.decision.also),
        confidence=found.decision.confidence, headline=_sentence(found.headline),
        reason=_sentence(found.decision.reason), facts=_facts(run, told, len(own)),
        findings=_findings(run, found, told, program, tests),
        parts=part[0], parts_title=part[1], parts_note=part[2], parts_of=part[3],
        ruled_out=_causes(found.ruled_out), lacks=_causes(found.lacks),
        notes=tuple(map(_sentence, found.notes)), step=step.query(run, found, told),
        ceilings=ceilings.query(run, told, tests), what_if=_what_if(told),
        what_if_lacks=_lacks_what_if(told, bool(own), recording), replay=_replay(told, replay),
        has_trace=bool(own), unanalysed=not recording and bool(own) and found.trace is None,
        recording=recording, repeatable=bool(program.workload or program.command),
        program=harmless(program.told()) if program.workload or program.command else "")


def _early(run: Run, said: VerdictData, recording: bool) -> DiagnoseData:
    """What Live says where there is no verdict yet, or none to be had."""
    sentence = "".join(text for text, _ in said.sentence)
    return DiagnoseData(said.word, said.title, headline=sentence, reason=said.detail.rstrip("."),
                        facts=format_time(max(0, run.end_ns - run.start_ns)), recording=recording)


def _unread(run: Run, told: Mapping[str, Any], traces: int) -> DiagnoseData:
    """Of a run made from traces nothing can be said before they are analysed."""
    return DiagnoseData(
        "unknown", verdict_title("unknown"), headline="The trace is not analysed yet",
        reason="The trace is analysed first", facts=_facts(run, told, traces),
        what_if_lacks=_lacks_what_if(told, True, False), has_trace=True, unanalysed=True)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _facts(run: Run, told: Mapping[str, Any], traces: int) -> str:
    """2 000 steps, 1 min 48 s, 2 traces."""
    steps, length = told["steps"], run.end_ns - run.start_ns
    total = steps["total"]
    said = [f"{format_count(total)} step{'' if total == 1 else 's'}"] if total else []
    if run.meta.get("kind") != "import" and length > 0:
        said.append(format_time(length))
    if traces:
        said.append(plural(traces, "trace"))
    return ", ".join(said)


def _findings(run: Run, found: Diagnosis, told: Mapping[str, Any], program: Program,
              tests: Sequence[Mapping[str, Any]]) -> tuple[FindingData, ...]:
    rules = Counter(finding.rule for finding in found.findings)
    place = step.range_of(run, found)
    device = found.facts.device.id if found.facts.device is not None else None
    unit = "per step" if told["steps"]["count"] or told["stages_ms"] else "of the trace"
    step_ms = _usual(told)
    ready = run.state != "recording" and not found.imported and found.facts.summary is not None
    result = []
    for rank, finding in enumerate(found.findings, 1):
        item = finding.to_json()
        can = ready and testable(finding.remedy, program)
        chosen = [test for test in tests if _is_of(test, finding)]
        first = finding.rule == found.verdict
        result.append(FindingData(
            key=finding.rule if rules[finding.rule] == 1 else str(rank), rule=finding.rule, rank=rank,
            title=finding.title, heading=_sentence(found.headline) if first else finding.title,
            stage=STAGES.get(finding.rule, "other"), cost=_cost(finding, unit),
            remedy=remedy_text(item["remedy"]) if finding.remedy else "", advice=finding.advice,
            prediction=_prediction(item["prediction"]),
            ratios=ratios.query(finding, chosen[-1] if chosen else None, step_ms, told["what_if"]),
            testable=can, why_not="" if can else _why_not(finding, found, program, run),
            evidence=_lines(item["evidence"]), counter=_lines(item["counter_evidence"]),
            code=code.query(finding.site, run) if finding.site else None,
            place=Place(place, device, finding.rule)))
    return tuple(result)


def _is_of(test: Mapping[str, Any], finding: Finding) -> bool:
    return finding.remedy is not None and test.get("remedy") == finding.remedy.to_json()


def _why_not(finding: Finding, found: Diagnosis, program: Program, run: Run) -> str:
    """Why the finding cannot be tested."""
    if run.state == "recording":
        return "Verify starts the program again, after this recording has ended"
    if found.imported:
        return "The run was made from a trace: there is no program to start again"
    if finding.remedy is None:
        return "The finding names no setting that can be tried"
    if not (program.workload or program.command):
        return "The run tells no command to start again"
    if found.facts.summary is None:
        return "The run has no steady steps to compare with"
    return _sentence(unfit(finding.remedy.setting, finding.remedy.after, program))


def _cost(finding: Finding, unit: str) -> str:
    weight = WEIGHTS[finding.severity]
    if not finding.cost_ms:
        return weight
    return f"{format_ms(finding.cost_ms * 1e6, ms_decimals(finding.cost_ms * 1e6))} {unit}, {weight}"


def _prediction(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return ""
    return prediction(told) if told["at_most"] else f"predicts {prediction(told)}"


def _lines(found: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    return tuple(Line(*evidence(item)) for item in found)


def _usual(told: Mapping[str, Any]) -> float | None:
    """The step that shares and predictions refer to, in ms."""
    spread = told["step_ms"]
    return float(spread["usual"]) if spread else None


def _causes(told: Sequence[tuple[str, str]]) -> tuple[Line, ...]:
    """Cause and reason; many causes with one reason are one row, whose note names them."""
    names: dict[str, list[str]] = {}
    for title, why in told:
        names.setdefault(why, []).append(title)
    rows = []
    for title, why in told:
        same = names[why]
        if len(same) < TOGETHER:
            rows.append(Line(title, why))
        elif title == same[0]:
            rows.append(Line(f"{len(same)} causes", why, ", ".join(same)))
    return tuple(rows)


Parts = tuple[tuple[PartRow, ...], str, str, str]


def _rows(parts: Sequence[tuple[str, str, float]], whole: float, total: str) -> tuple[PartRow, ...]:
    decimals = ms_decimals(whole * 1e6)
    rows = [PartRow(name, stage, format_ms(ms * 1e6, decimals, unit=False), ms / whole,
                    format_share(ms / whole, 1)) for name, stage, ms in parts]
    return (*rows, PartRow(total, "", format_ms(whole * 1e6, decimals, unit=False), None,
                           format_share(1.0, 1)))


def _partition(told: Mapping[str, Any]) -> Parts | None:
    """Every class that took time, largest first; None without a partition."""
    part = told["partition_ms"]
    whole = sum(part.values()) if part else 0.0
    if not part or whole <= 0:
        return None
    ordered = sorted(((name, ms) for name, ms in part.items() if ms > 0), key=lambda item: -item[1])
    steps = told.get("traced_steps") or told["steps"]
    counted = f"mean of {format_count(steps['count'])} traced steps" if steps["count"] > 1 else \
        "one traced step" if steps["count"] else "the whole trace"
    named = [(class_title(name), CLASS_STAGES.get(name, "other"), ms) for name, ms in ordered]
    return (_rows(named, whole, "step" if steps["count"] else "trace"), "Partition of the step",
            f"ms, {counted}", device_title(told))


def _stages(told: Mapping[str, Any]) -> Parts:
    stages = told["stages_ms"]
    whole = sum(stages.values()) if stages else 0.0
    if whole <= 0:
        return (), "Stages", "", ""
    named = [(stage_title(name), name, ms) for name, ms in stages.items()]
    return _rows(named, whole, "step"), "Stages", "ms, host time, mean of steady steps", ""


def _what_if(told: Mapping[str, Any]) -> tuple[WhatIfRow, ...]:
    """The largest gain first, headroom last."""
    shown = sorted(told["what_if"] or (), key=lambda s: (s["scenario"] == HEADROOM, -s["speedup"]))
    rows = []
    for s in shown:
        low, high = format_number(s["low"], 2), format_number(s["high"], 2)
        interval = low if low == high else f"{low} to {high}"
        if s["scenario"] == HEADROOM:
            interval = "headroom only"
        rows.append(WhatIfRow(scenario_title(s["scenario"]), format_ms(s["step_ms"] * 1e6, unit=False),
                              format_ratio(s["speedup"]), interval, s["note"]))
    return tuple(rows)


def _lacks_what_if(told: Mapping[str, Any], has_trace: bool, recording: bool) -> str:
    """Why there is no replay; "" with one."""
    if told["what_if"]:
        return ""
    withheld = (told.get("replay") or {}).get("withheld")
    if withheld:
        return f"No predictions from the replay: {withheld}."
    if not has_trace:
        return "Steps are replayed without each of their costs from a trace, and this run holds none."
    return "The trace is read when the recording is over." if recording else "The trace is not analysed yet."


def _replay(told: Mapping[str, Any], replay: Mapping[str, Any]) -> str:
    if told["replay_error"] is None or replay.get("withheld"):
        return ""
    return f"replay error {format_share(told['replay_error'], 1)}"
