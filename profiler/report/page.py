"""All that a report of one run shows, as texts and pictures. The template only places them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from profiler.analysis.facts import EARLIER
from profiler.analysis.series import Throttle, throttles
from profiler.metrics import stage_title
from profiler.report import facts, trace
from profiler.report.ceilings import ceilings
from profiler.report.experiment import experiment, read
from profiler.report.series_chart import charts, draw
from profiler.report.step_chart import flag, stage_bar, stage_swatch, step_chart
from profiler.rules import energy
from profiler.rules.verdict import Diagnosis, diagnose
from profiler.rules.words import FLAGS, WEIGHTS, evidence, prediction, remedy, verdict_title
from profiler.units import (
    clock,
    format_count,
    format_gib,
    format_ms,
    format_number,
    format_power,
    format_rate,
    format_share,
    format_time,
    ms_decimals,
)

if TYPE_CHECKING:
    from profiler.run.reader import Run

INTERVALS = 20  # of throttling, that are listed
BANDS = 1000  # throttled times in one picture, about: those that would touch are drawn as one


def page(run: Run, price: energy.Price | None = None) -> dict[str, Any]:
    """Of one run. Texts are plain: the template escapes them. Pictures are markup and escape theirs.

    `price`: of a kWh; without it no cost is told.
    """
    diagnosis = diagnose(run)
    told = diagnosis.to_json()
    used = energy.measured(run, diagnosis) if run.devices else None
    steps = diagnosis.facts.steps
    begin = int(steps.t0_ns[0]) if EARLIER in diagnosis.facts.steady.left_out else run.start_ns
    picture, note = step_chart(steps.select(steps.training), begin, run.end_ns)
    rows, sources = facts.overhead(run)
    happened, more = facts.events(run)
    unit = "per step" if told["steps"]["count"] or told["stages_ms"] else "of the trace"
    return {
        "run": facts.heading(run) | {"steps": format_count(told["steps"]["total"]), "file": str(run.path)},
        "verdict": _verdict(told), "trace": trace.section(told), "empty": _empty(run, told),
        "stage_bar": stage_bar(told["stages_ms"] or {}), "step_chart": picture, "step_note": note,
        "stages": _stages(told), "figures": _figures(run, told, diagnosis),
        "throttling": _throttling(told, run.start_ns),
        "energy": energy.rows(used, price) if used else [],
        "charts": _charts(run), "findings": [_finding(finding, unit) for finding in told["findings"]],
        "ruled_out": _causes(told["ruled_out"]), "lacks": _causes(told["lacks"]),
        "experiments": read(experiment, run.results("experiment")),
        "ceilings": read(ceilings, run.results("ceilings")[-1:]),
        "settings": facts.settings(run), "overhead": [] if diagnosis.imported else rows,
        "sources": sources, "imported": diagnosis.imported,
        "missing": facts.missing(run), "holes": facts.holes(run), "events": happened, "more_events": more,
        "traces": facts.traces(run), "output": facts.output_end(run),
        "notes": told["notes"] + (energy.notes(used) if used else []),
    }


def _empty(run: Run, told: Mapping[str, Any]) -> str:
    if told["steps"]["total"]:
        return ""
    return "" if run.tracks else "The run holds no sample and no step: it ended before anything was measured."


def _verdict(told: Mapping[str, Any]) -> dict[str, Any]:
    word = told["verdict"]
    return {"word": verdict_title(word), "flag": flag(FLAGS.get(word, "other")),
            "sentence": f"{told['headline']}.",
            "reason": "" if told["reason"] == told["headline"] else told["reason"],
            "confidence": told["confidence"], "also": [verdict_title(other) for other in told["also"]]}


def _stages(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the stage table, the sum last. Empty without a steady step."""
    stages, step = told["stages_ms"], told["step_ms"]
    if not stages or not step:
        return []
    usual = step["usual"]
    decimals = ms_decimals(usual * 1e6)

    def ms(value: float | None) -> str:
        return format_ms(None if value is None else value * 1e6, decimals, unit=False)

    rows = [{"name": stage_title(stage), "swatch": stage_swatch(stage), "ms": ms(value),
             "share": format_share(value / usual), "device": ms(told["device_ms"].get(stage)),
             "lag": ms(told["lag_ms"].get(stage)), "sum": False} for stage, value in stages.items()]
    device = sum(told["device_ms"].values()) if told["device_ms"] else None
    return [*rows, {"name": "step", "swatch": "", "ms": ms(usual), "share": format_share(1.0),
                    "device": ms(device), "lag": "", "sum": True}]


def _figures(run: Run, told: Mapping[str, Any], diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """(figure, value, why it is missing)."""
    step, rate, whole, live = told["step_ms"], told["throughput"], told["whole_run"] or {}, told["live"]
    no_step = "" if step else told["reason"]
    unit = rate["unit"] if rate else "samples/s"
    rows = [("Throughput, steady", format_rate(rate["value"], unit) if rate else "",
             no_step or "how many samples a step has is not known"),
            ("Throughput, whole run", format_rate(whole.get("throughput"), unit), no_step or "not known")]
    if step:
        decimals = ms_decimals(step["usual"] * 1e6)
        low, high = (step["p5"], step["p95"]) if step["p5"] is not None else step["range"]
        ends = [format_ms(value * 1e6, decimals, unit=False) for value in (low, high)]
        rows += [("Step time, median", format_ms(step["median"] * 1e6, decimals), ""),
                 ("Step time, 5 to 95 %" if step["p5"] is not None else "Step time, range",
                  f"{ends[0]} to {ends[1]}\u00a0ms" if low < high else "", "only one step is counted")]
    rows.append(("Steady steps", f"{format_count(told['steps']['count'])} of "
                 f"{format_count(told['steps']['total'])}", ""))
    if run.devices:
        a_slice = diagnosis.facts.card is not diagnosis.facts.device
        rows += [("GPU utilization", format_share(live.get("gpu.util")),
                  "a slice has none of its own" if a_slice else "not measured in the steady steps"),
                 ("GPU power", format_power(live.get("gpu.power")),
                  "the power of the whole card is not a slice's" if a_slice else
                  "not measured in the steady steps"),
                 ("Peak reserved by torch", format_gib(_peak(run)), "no CUDA allocator in use")]
    else:
        rows.append(("GPU", "", str((run.meta.get("gpu") or {}).get("reason") or "none was watched")))
    rows.append(("CPU of the run", _cores(live.get("target.cpu")), "not measured"))
    share = (run.meta.get("overhead") or {}).get("cpu_share")
    rows.append(("Own overhead", f"{format_share(share, 1)} of a core" if isinstance(share, float) else "",
                 "the recording ended early"))
    return [(name, value, "" if value else why) for name, value, why in rows
            if value or not diagnosis.imported]


def _cores(value: float | None) -> str:
    return "" if value is None else f"{format_number(value, 1)}\u00a0cores"


def _peak(run: Run) -> float | None:
    """The most that torch's allocator held, in bytes; the sum is not taken over devices."""
    found = [run.series(track.id, points=500) for track in run.find("torch.mem_reserved")]
    return max((float(series.high.max()) for series in found if len(series.high)), default=None)


def _throttling(told: Mapping[str, Any], start_ns: int) -> dict[str, Any] | None:
    """Rows by reason, and of the intervals the first ones; None without any."""
    found = told.get("throttling")
    if not found or not found["reasons"]:
        return None
    rows = [(one["reason"], format_count(one["intervals"]), format_time(one["s"] * 1e9),
             format_time(one["longest_s"] * 1e9), format_share(one["share"], 1)) for one in found["reasons"]]
    spans = [(f"{clock(one['t0_ns'] - start_ns)} to {clock(one['t1_ns'] - start_ns)}",
              f"{format_time(one['held_s'] * 1e9)}: {', '.join(one['reasons'])}")
             for one in found["intervals"][:INTERVALS]]
    more = len(found["intervals"]) - len(spans) + found["more"]
    return {"rows": rows, "spans": spans, "more": more,
            "known": format_time(found["known_s"] * 1e9)}


def _charts(run: Run) -> list[dict[str, str]]:
    shortest = max(0, run.end_ns - run.start_ns) // BANDS
    slow: dict[int | None, list[Throttle]] = {
        device.id: [span for track in run.find("gpu.throttle", device=device.id)
                    for span in throttles(*run.values(track.id), shortest)] for device in run.devices}
    found = [(chart, draw(run, chart, slow.get(chart.device, []), named="utilization" in chart.title))
             for chart in charts(run)]
    return [{"title": chart.title, "picture": picture} for chart, picture in found if picture]


def _finding(told: Mapping[str, Any], unit: str) -> dict[str, Any]:
    return {
        "title": told["title"], "severity": told["severity"],
        "weight": WEIGHTS[told["severity"]], "site": told["site"] or "",
        "advice": told["advice"],
        "cost": f"{format_ms(told['cost_ms'] * 1e6)} {unit}" if told["cost_ms"] else "",
        "evidence": [evidence(item) for item in told["evidence"]],
        "counter": [evidence(item) for item in told["counter_evidence"]],
        "remedy": remedy(told["remedy"]), "prediction": prediction(told["prediction"]),
    }


def _causes(told: list[dict[str, str]]) -> list[tuple[str, str]]:
    """(causes, why), one row for all that have the same reason: without a step that is nearly every one."""
    rules: dict[str, list[str]] = {}
    for item in told:
        rules.setdefault(item["text"], []).append(item["rule"])
    return [(", ".join(names), text) for text, names in rules.items()]
