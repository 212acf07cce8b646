"""A diagnosis on the terminal, from its JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from profiler.cli._common import fitted, print_table
from profiler.metrics import stage_title
from profiler.report.table import Table
from profiler.report.trace import device_title, ranks
from profiler.report.trace_tables import summary, tables
from profiler.rules.words import (
    class_title,
    evidence_line,
    prediction,
    remedy,
    scenario_title,
    verdict_title,
)
from profiler.units import (
    format_count,
    format_ms,
    format_prediction,
    format_rate,
    format_ratio,
    format_share,
    ms_decimals,
)

ROWS = 10  # of a table
NAME, WORDS = 64, 48  # letters of a table's first column, and of another one with words
SHOWN = 1.01  # predicted speedup from which a scenario is printed


def print_diagnosis(told: Mapping[str, Any], every: bool = False, energy: Sequence[str] = ()) -> None:
    """The human form, from the JSON form of a diagnosis. `every`: with the tables of a trace.

    `energy`: lines about it.
    """
    print(f"{verdict_title(told['verdict'])}: {told['headline']}.")
    if told["also"]:
        print(f"Also {', '.join(verdict_title(word).lower() for word in told['also'])}.")
    if told["reason"] != told["headline"]:
        print(f"Confidence {told['confidence']}: {told['reason']}.")
    print()
    if told["step_ms"] and told["stages_ms"]:
        _print_stages(told)
    for line in energy:
        print(f"  {line}")
    if energy or (told["step_ms"] and told["stages_ms"]):
        print()
    if told["partition_ms"]:
        _print_partition(told)
        for line in filter(None, summary(told)):
            print(f"  {line}")
        print()
    if told["what_if"]:
        _print_what_if(told)
        print()
    if table := ranks(told):
        _print_tables([table])
    unit = "" if told["steps"]["count"] or told["stages_ms"] else " of the trace"
    for number, finding in enumerate(told["findings"], 1):
        _print_finding(number, finding, unit or " per step", told["notes"])
    if every:
        _print_tables(tables(told, ROWS))
    for note in told["notes"]:
        print(f"Note: {note}.")
    if told["partition_ms"] and not every:
        print("More with --tables: kernels, operators, your code, launches, idle gaps, memory and others.")


def _print_tables(found: Sequence[Table]) -> None:
    for table in found:
        print(f"  {table.title}: {table.note}" if table.note else f"  {table.title}")
        words = {0, *table.words}
        width = max(map(len, (table.head, *table.rows)))
        rows = [[fitted(cell, WORDS if k else NAME) if k in words else cell for k, cell in enumerate(row)]
                for row in table.rows]
        print_table(rows, table.head, [k for k in range(width) if k not in words], indent="    ")
        print()


def _print_stages(told: Mapping[str, Any]) -> None:
    step, stages = told["step_ms"], told["stages_ms"]
    usual = step["usual"] * 1e6
    decimals = ms_decimals(usual)

    def ms(value: float | None) -> str:
        return format_ms(None if value is None else value * 1e6, decimals, unit=False)

    rows = [[stage_title(name), ms(value), format_share(value * 1e6 / usual),
             ms(told["device_ms"].get(name)), ms(told["lag_ms"].get(name))] for name, value in stages.items()]
    on_device = sum(told["device_ms"].values()) or None
    rows.append(["step", ms(step["usual"]), format_share(1.0), ms(on_device), ""])
    head, right = ["stage", "ms/step", "share", "device ms", "lag ms"], [1, 2, 3, 4]
    if not told["device_ms"]:
        rows, head, right = [row[:3] for row in rows], head[:3], right[:2]
    print_table(rows, head, right, indent="  ")
    print()
    facts = [_spread(step, decimals)]
    counts = told["steps"]
    facts.append(f"{format_count(counts['count'])} steady steps of {format_count(counts['total'])}")
    print("  " + ", ".join(facts))
    if told["throughput"]:
        text = format_rate(told["throughput"]["value"], told["throughput"]["unit"])
        whole = told["whole_run"]["throughput"]
        print(f"  {text}" + (f", {format_rate(whole, unit=False)} over the whole run" if whole else ""))
    print(f"  on {told['device']['name']}")


def _spread(step: Mapping[str, Any], decimals: int) -> str:
    def ms(value: float) -> str:
        return format_ms(value * 1e6, decimals, unit=False)

    ends = (f"5 to 95 %: {ms(step['p5'])} to {ms(step['p95'])} ms" if step["p5"] is not None else
            f"range {ms(step['range'][0])} to {ms(step['range'][1])} ms")
    low, high = step["range"]
    return f"median {ms(step['median'])} ms, {ends}" if low < high else f"{ms(step['median'])} ms"


def _print_partition(told: Mapping[str, Any]) -> None:
    """Every class that took time, largest first, and what it sums to."""
    part = told["partition_ms"]
    whole = sum(part.values())
    decimals = ms_decimals(whole * 1e6)
    rows = [[class_title(name), format_ms(value * 1e6, decimals, unit=False), format_share(value / whole, 1)]
            for name, value in sorted(part.items(), key=lambda item: -item[1]) if value]
    steps = told["steps"]
    what = "mean step" if steps["count"] > 1 else "step" if steps["count"] else "trace"
    rows.append([what, format_ms(whole * 1e6, decimals, unit=False), format_share(1.0, 1)])
    head = [device_title(told), "ms/step" if steps["count"] else "ms", "share"]
    print_table(rows, head, [1, 2], indent="  ")
    devices = [d for d in told.get("devices") or () if d["partition_ms"]]
    if len(devices) > 1:
        print()
    for device in devices if len(devices) > 1 else ():
        print(f"  device {device['device']}: {_largest(device['partition_ms'])}")
    if told["stages_ms"] or not told["step_ms"]:
        return
    without = ", ".join(f"{count} {why}" for why, count in steps["left_out"].items())
    print(f"\n  {_spread(told['step_ms'], decimals)}, {format_count(steps['count'])} of "
          f"{_counted(steps['total'], 'step')} counted{f' ({without} left out)' if without else ''}, "
          f"by {steps['rule']}")


def _counted(count: int, name: str) -> str:
    return f"{format_count(count)} {name}{'' if count == 1 else 's'}"


def _largest(part: Mapping[str, float]) -> str:
    """The three largest classes of a partition on one line."""
    whole = sum(part.values())
    decimals = ms_decimals(whole * 1e6)
    most = sorted(part.items(), key=lambda item: -item[1])[:3]
    said = [f"{class_title(name)} {format_ms(ms * 1e6, decimals)} ({format_share(ms / whole)})"
            for name, ms in most if ms]
    return f"{', '.join(said)}, of {format_ms(whole * 1e6, decimals)}"


def _print_what_if(told: Mapping[str, Any]) -> None:
    """Steps replayed without each cost, the largest gain first; those without any gain are left out."""
    shown = [s for s in sorted(told["what_if"], key=lambda s: -s["speedup"]) if s["speedup"] >= SHOWN]
    rows = [[scenario_title(s["scenario"]), format_ms(s["step_ms"] * 1e6, unit=False),
             format_ratio(s["speedup"]), format_prediction(s["low"], s["high"])] for s in shown]
    if rows:
        print_table(rows, ["replayed", "ms/step", "faster", "between"], [1, 2, 3], indent="  ")
        for text in dict.fromkeys(s["note"] for s in shown if s["note"]):
            names = ", ".join(scenario_title(s["scenario"]) for s in shown if s["note"] == text)
            print(f"  {names}: {text}")
    else:
        print("  Replayed without each of its costs, no step is 1 % faster.")
    if told["replay_error"] is not None:
        print(f"\n  with nothing removed, the replay is {format_share(told['replay_error'], 1)} off the "
              "measured step")


def _print_finding(number: int, finding: Mapping[str, Any], unit: str, notes: Sequence[str]) -> None:
    """`unit`: what the cost is of. What a note says of all findings is not said again."""
    cost = f", {_cost(finding['cost_ms'] * 1e6)}{unit}" if finding["cost_ms"] else ""
    print(f"{number}. {finding['title']}{cost}")
    if finding["site"]:
        print(f"   at {finding['site']}")
    for kind, mark in (("evidence", "+"), ("counter_evidence", "-")):
        for item in finding[kind]:
            if item["text"] not in notes:
                print(f"   {mark} {evidence_line(item)}")
    if finding["remedy"]:
        print(f"   Try {remedy(finding['remedy'])}")
    if finding["advice"]:
        print(f"   {finding['advice']}")
    if predicted := finding["prediction"]:
        print(f"   {'' if predicted['at_most'] else 'predicts '}{prediction(predicted)}")
    print()


def _cost(ns: float) -> str:
    return format_ms(ns, ms_decimals(ns))
