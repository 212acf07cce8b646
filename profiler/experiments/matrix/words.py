"""A matrix as the Markdown tables that the README has, from its JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from profiler.experiments.matrix.others import DISTURBED
from profiler.rules.base import plural
from profiler.units import format_share


def markdown(told: Mapping[str, Any]) -> str:
    """Where and when, the share that is right, then tables by case, verdict, rule, and of confusion."""
    blocks = [_where(told)]
    if runs := told["runs"]:
        blocks += [_headline(runs, "runs of faults and controls bring what they must"), _cases(runs["cases"]),
                   *_scores(runs), _confusion(runs)]
    if traces := told["traces"]:
        blocks += [_headline(traces, "labelled traces bring a verdict that their truth accepts"),
                   *_scores(traces), _confusion(traces)]
    if left_out := told["left_out"]:
        reasons: dict[str, list[str]] = {}
        for item in left_out:
            reasons.setdefault(item["why"], []).append(f"`{item['fault']}`")
        blocks += [f"Left out: {', '.join(names)} ({why})." for why, names in reasons.items()]
    return "\n\n".join(blocks)


def line_text(line: Mapping[str, Any]) -> str:
    """What came of one run: "fault few_workers 1: right, input_bound [input_bound], 9.1 s"."""
    case = line["case"]
    said = f"{line['verdict']} [{', '.join(line['rules'])}]" if line["verdict"] else line["state"]
    why = "right" if line["right"] else f"WRONG ({line['why']})"
    busy = f", {line['others']:.1f} cores busy with others" if line["others"] >= DISTURBED else ""
    return f"{case['kind']} {case['name']} {line['repeat']}: {why}, {said}, {line['seconds']:.1f} s{busy}"


def _where(told: Mapping[str, Any]) -> str:
    here, versions = told["machine"], told["versions"]
    names = [f"{name} {versions[name]}" for name in ("stepscope", "python", "torch") if versions.get(name)]
    text = (f"{plural(here['cores_usable'], 'core')} of {here['cpu']}, {here['system']}, "
            f"{', '.join(names)}; {told['date']}.")
    return f"{text} Interrupted: not all runs were made." if told["interrupted"] else text


def _headline(part: Mapping[str, Any], what: str) -> str:
    right, alone = part["right"], part["right_alone"]
    lost = [f"{part[state]} {text}" for state, text in (("crashed", "crashed"), ("stuck", "got stuck"))
            if part[state]]
    text = (f"**{right['hits']} of {right['count']} {what}: {_share(right)}**"
            + (f"; {' and '.join(lost)}" if lost else "") + ".")
    if only := part.get("right_only"):  # kept results may be older
        text += f" In {only['hits']} of them no rule gives a false alarm beside."
    if disturbed := right["count"] - alone["count"]:
        text += (f" During {disturbed} of {right['count']} other programs kept more than {DISTURBED:g} cores "
                 "busy"
                 + (f"; of the rest {alone['hits']} of {alone['count']} are right: {_share(alone)}."
                    if alone["count"] else "."))
    return text


def _share(share: Mapping[str, Any]) -> str:
    """"97 % (91 to 99)", the 95 % bounds in brackets."""
    if share["value"] is None:
        return "none"
    low, high = (format_share(share[end], unit=False) for end in ("low", "high"))
    return f"{format_share(share['value'])} ({low} to {high})"


def _cases(cases: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for case in cases:
        must = f"`{' / '.join(case['verdicts'])}`"
        must += f" by `{case['rule']}`" if case["rule"] else ", blames nothing"
        name = f"`{case['name']}`" if case["kind"] == "fault" else f"control: {case['name']}"
        rows.append((name, must, f"{case['right']} of {case['runs']}"))
    return _table(("fault or control", "must bring", "right"), rows)


def _scores(part: Mapping[str, Any]) -> list[str]:
    """Tables of precision and recall."""
    tables = []
    for key, title in (("verdicts", "verdict"), ("rules", "rule")):
        rows = [(f"`{row['name']}`", *(_counted(row[name]) for name in ("precision", "recall")))
                for row in part[key]]
        if rows:
            tables.append(_table((title, "precision", "recall"), rows))
    return tables


def _counted(share: Mapping[str, Any]) -> str:
    return f"{share['hits']} of {share['count']}, {_share(share)}" if share["count"] else "none"


def _confusion(part: Mapping[str, Any]) -> str:
    """Expected verdicts down, found ones across."""
    if all(item["expected"] == item["found"] for item in part["confusion"]):
        return "No verdict was taken for another."
    cells = {(item["expected"], item["found"]): item["runs"] for item in part["confusion"]}
    found = sorted({item["found"] for item in part["confusion"]})
    rows = [(f"`{expected}`", *(str(cells.get((expected, word), "")) for word in found))
            for expected in sorted({item["expected"] for item in part["confusion"]})]
    return _table(("expected, found", *(f"`{word}`" for word in found)), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
                     for line in lines)
