"""Precision, recall and confusion, from finished runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Any

from profiler.experiments.matrix.cases import FAULT, HEALTHY, TRACE
from profiler.experiments.matrix.judge import FIRST
from profiler.experiments.matrix.others import DISTURBED
from profiler.experiments.matrix.play import CRASHED, STUCK, TOLD
from profiler.rules.decision import GAIN
from profiler.rules.trace.evidence import WORTH

Line = Mapping[str, Any]
Z = 1.959964  # of 95 %
NOISY = "noisy_machine"  # the rule that tells of other programs


def wilson(hits: int, count: int) -> tuple[float, float]:
    """95 % interval of a share of which `hits` of `count` were seen: Wilson's score, in [0, 1].

    Unlike hits / count with a normal error it says something at 5 of 5 as well.
    """
    if not count:
        return 0.0, 1.0
    share, z2 = hits / count, Z * Z
    centre = share + z2 / (2 * count)
    half = Z * sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    scale = 1 + z2 / count
    low, high = max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)
    return (0.0 if hits == 0 else low), (1.0 if hits == count else high)


def share(hits: int, count: int) -> dict[str, Any]:
    """A share with its bounds; `value` is None of nothing."""
    low, high = wilson(hits, count)
    return {"hits": hits, "count": count, "value": hits / count if count else None, "low": low, "high": high}


def table(lines: Sequence[Line]) -> dict[str, Any]:
    """Of runs alike: the share that is right, and by case, verdict and rule.

    A run that crashed or got stuck was not diagnosed: it is not right, and counts against
    the recall of what it should have brought. `right_alone` is of the runs that other programs
    left alone; all else is of every run. `right_only`: of all runs those that are right and in which
    no rule gives a false alarm beside.
    """
    pairs = Counter((_expected(line), _found(line)) for line in lines)
    alone = [line for line in lines if line["others"] < DISTURBED]
    return {
        "right": share(sum(line["right"] for line in lines), len(lines)),
        "right_alone": share(sum(line["right"] for line in alone), len(alone)),
        "right_only": share(sum(line["right"] and not _false_alarms(line) for line in lines), len(lines)),
        "crashed": sum(line["state"] == CRASHED for line in lines),
        "stuck": sum(line["state"] == STUCK for line in lines),
        "cases": _cases(lines), "verdicts": _verdicts(pairs),
        "rules": _rules(lines),
        "confusion": [{"expected": expected, "found": found, "runs": count}
                      for (expected, found), count in sorted(pairs.items())],
    }


def parts(lines: Iterable[Line]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Tables of the recorded runs and of labelled traces, which are counted apart; None where none are."""
    every = list(lines)
    traces = [line for line in every if line["case"]["kind"] == TRACE]
    runs = [line for line in every if line["case"]["kind"] != TRACE]
    return table(runs) if runs else None, table(traces) if traces else None


def _found(line: Line) -> str:
    return str(line["verdict"] if line["state"] == TOLD else line["state"])


def _expected(line: Line) -> str:
    """The stated verdict; of several the one that was found, else the first."""
    stated = line["case"]["verdicts"]
    found = _found(line)
    return found if found in stated else str(stated[0])


def _cases(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """In order of their first run."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["case"]["kind"], line["case"]["name"]), []).append(line)
    return [{
        "kind": kind, "name": name, "verdicts": group[0]["case"]["verdicts"],
        "rule": group[0]["case"]["rule"], "runs": len(group), "right": sum(line["right"] for line in group),
        "wrong": [line["why"] for line in group if not line["right"]],
    } for (kind, name), group in groups.items()]


def _verdicts(pairs: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    words = sorted({word for pair in pairs for word in pair} - {CRASHED, STUCK})

    def scored(word: str) -> dict[str, Any]:
        hits = pairs.get((word, word), 0)
        expected = sum(n for (e, _), n in pairs.items() if e == word)
        found = sum(n for (_, f), n in pairs.items() if f == word)
        return {"name": word, "precision": share(hits, found), "recall": share(hits, expected)}

    return [scored(word) for word in words]


def _rules(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Of every rule that had to warn, or did.

    Recall: of the runs whose fault states the rule, those in which it is first or second. Precision: of
    the runs in which it warns (in a control: blames), those whose fault states it or whose verdict it is;
    of noisy_machine those that others disturbed by the account of the matrix.
    A labelled trace had to bring a warning of what costs more than 5 % in truth, at any place, and one is
    due from 3 % on; of a rule whose cost the truth does not tell nothing is counted.
    """
    names = sorted({name for line in lines for name in (*_owed(line), *line["rules"])})
    found = []
    for name in names:
        own = [line for line in lines if name in _owed(line)]
        warned = [due for line in lines if name in line["rules"] and (due := _due(line, name)) is not None]
        if own or warned:
            found.append({"name": name, "recall": share(sum(_brought(line, name) for line in own), len(own)),
                          "precision": share(sum(warned), len(warned))})
    return found


def _owed(line: Line) -> set[str]:
    """Rules that have to warn."""
    case = line["case"]
    return {case["rule"]} - {""} | {rule for rule, speedup in case["speedups"].items() if speedup > GAIN}


def _brought(line: Line, rule: str) -> bool:
    return rule in (line["rules"][:FIRST] if line["case"]["kind"] == FAULT else line["rules"])


def _false_alarms(line: Line) -> list[str]:
    return [rule for rule in line["rules"] if _due(line, rule) is False]


def _due(line: Line, rule: str) -> bool | None:
    """Whether a warning of this rule is no false alarm; None where nobody knows."""
    case = line["case"]
    if rule == NOISY and case["kind"] != TRACE:
        return bool(line["others"] >= DISTURBED)
    if case["kind"] == TRACE:
        return case["speedups"][rule] >= 1 + WORTH if rule in case["speedups"] else None
    return case["kind"] == FAULT and (rule == case["rule"] or (rule in case["verdicts"] and rule != HEALTHY))
