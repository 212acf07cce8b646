"""Compare two traces, or runs that hold traces, step for step.

    stepscope compare A B

Steps, the partition of step time, operators and kernels, per step and absolute, with
those that are new and those that have vanished. Of two runs also the energy of a step.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.analysis.energy_use import Energy
from profiler.cli import _traces
from profiler.cli._common import fitted, print_json, print_table, shown
from profiler.rules import energy
from profiler.rules.trace.comparison import SAME, compare
from profiler.rules.verdict import diagnose
from profiler.rules.words import class_title, kernel_title
from profiler.run.reader import Run
from profiler.units import MINUS, format_count, format_ms, format_number, format_ratio

ROWS = 15
NAME = 64  # letters of a name


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", type=Path, help="a trace, or a run that holds one")
    parser.add_argument("b", metavar="B", type=Path, help="what it is compared with")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    a, b = (_traces.one(path) for path in (args.a, args.b))
    told = compare(a, b)
    told["a"]["file"], told["b"]["file"] = str(args.a), str(args.b)
    used, queries = zip(*(_of_run(path) for path in (args.a, args.b)), strict=True)
    told["energy"] = energy.compared(used)
    told["notes"] += energy.comparison_notes(used)
    if all(queries) and queries[0] != queries[1]:
        told["notes"].append(f"Used memory is by query {queries[0]} in A and {queries[1]} in B: v1 counts "
                             "what the driver reserves as used, so the two do not compare")
    if args.json:
        print_json(told)
    else:
        print_comparison(shown(told))
    return 0


def _of_run(path: Path) -> tuple[Energy | None, str]:
    """Its energy, and which of NVML's queries told the used memory: v1, v2. (None, "") for a trace."""
    if not _traces.is_run(path):
        return None, ""
    with Run.open(path) as run:
        queries = {str(track.properties.get("version") or "") for track in run.find("gpu.mem_used")} - {""}
        return energy.measured(run, diagnose(run)), ", ".join(sorted(queries))


def print_comparison(told: Mapping[str, Any]) -> None:
    """The human form, from the JSON form."""
    for name in "ab":
        side = told[name]
        step = f", {format_ms(side['step_ms']['median'] * 1e6)} per step" if side["step_ms"] else ""
        print(f"{name.upper()}  {side['file']}: {side['device']['name']}{step}, "
              f"{_counted(side['steps'])}")
    ratio = told["ratio"]
    if ratio is not None:
        print(f"\nB is {_compared(ratio)}")
    for line in energy.comparison_lines(told["energy"]):
        print(line)
    head = "ms/step" if told["per_step"] else "ms"
    if told["partition_ms"]:
        spent = [r for r in told["partition_ms"] if r["a_ms"] or r["b_ms"]]
        rows = [[class_title(r["class"]), *_times(r)] for r in spent]
        whole = {key: sum(r[key] for r in spent) for key in ("a_ms", "b_ms", "delta_ms")}
        rows.append(["step" if told["per_step"] else "trace", *_times(whole)])
        print()
        print_table(rows, [head, "A", "B", "B\u2212A"], [1, 2, 3], indent="  ")
    for key, title in (("kernels", "kernel"), ("operators_device", "operator, device"),
                       ("operators", "operator, host self")):
        _print_changes(told[key], f"{title}, {head}")
    if told["notes"]:
        print()
    for note in told["notes"]:
        print(f"Note: {note}.")


def _compared(ratio: float) -> str:
    if abs(ratio - 1) <= SAME:
        return "as fast as A"
    if ratio > 1:
        return f"{format_ratio(ratio)} faster than A"
    return f"slower: its step takes {format_ratio(1 / ratio)} A's"


def _counted(steps: Mapping[str, Any]) -> str:
    if not steps["count"]:
        return "no steps"
    return f"{format_count(steps['count'])} {'step' if steps['count'] == 1 else 'steps'} by {steps['rule']}"


def _print_changes(table: Mapping[str, Any], title: str) -> None:
    if not table["rows"]:
        return
    rows = [[fitted(kernel_title("/".join(r["key"])), NAME), *_times(r), f"{format_number(r['a_count'], 1)}",
             f"{format_number(r['b_count'], 1)}", "" if r["state"] == "both" else r["state"]]
            for r in table["rows"][:ROWS]]
    print()
    print_table(rows, [title, "A", "B", "B\u2212A", "count A", "count B", ""], [1, 2, 3, 4, 5], indent="  ")
    more = len(table["rows"]) + table["left_out"] - len(rows)
    if more > 0:
        print(f"  and {more} more; {table['new']} new, {table['vanished']} vanished")


def _times(row: Mapping[str, Any]) -> list[str]:
    delta = row["delta_ms"]
    text = format_ms(delta * 1e6, 2, unit=False)
    return [format_ms(row["a_ms"] * 1e6, 2, unit=False), format_ms(row["b_ms"] * 1e6, 2, unit=False),
            text if text.startswith(MINUS) or float(delta) == 0 else f"+{text}"]
