"""The running score: how the predictions of all experiments that run files keep have done."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from profiler.errors import RunError
from profiler.model import mapping
from profiler.run.reader import Run

SCORED = ("hit", "miss", "vague", "not scored")


@dataclass(frozen=True)
class Entry:
    """One experiment. `error`: |log(predicted / measured)|; None where no prediction was scored."""

    run: str
    rule: str
    remedy: Mapping[str, Any]
    prediction: Mapping[str, Any] | None
    ratio: Mapping[str, Any] | None
    outcome: str
    score: str
    error: float | None


@dataclass(frozen=True)
class Board:
    """`skipped`: files that are no run, are damaged, or hold something else in an experiment's place."""

    entries: tuple[Entry, ...]
    runs: int  # that were read
    skipped: int

    @property
    def counts(self) -> dict[str, int]:
        return {word: sum(entry.score == word for entry in self.entries) for word in SCORED}

    @property
    def error(self) -> float | None:
        """The median of |log(predicted / measured)|, hits, misses and vague ones alike."""
        known = [entry.error for entry in self.entries if entry.error is not None]
        return median(known) if known else None

    def to_json(self) -> dict[str, Any]:
        counts = {word.replace(" ", "_"): count for word, count in self.counts.items()}
        return {"schema": 1, **counts, "median_error": self.error, "runs": self.runs, "skipped": self.skipped,
                "experiments": [vars(entry) for entry in self.entries]}


def scoreboard(paths: Sequence[Path]) -> Board:
    """Of the run files among `paths` and in their folders. A copy of an experiment counts once."""
    entries: list[Entry] = []
    seen: set[str] = set()
    runs = skipped = 0
    for path in _files(paths):
        try:
            with Run.open(path) as run:
                told = run.results("experiment")
            found = [_entry(path, one) for one in told if one.get("kind") == "verify"]
        except (RunError, LookupError, TypeError, ValueError, ArithmeticError, OSError):
            skipped += 1
            continue
        runs += 1
        keys = [json.dumps(one, sort_keys=True) for one in told if one.get("kind") == "verify"]
        entries += [entry for key, entry in zip(keys, found, strict=True) if key not in seen]
        seen.update(keys)
    return Board(tuple(entries), runs, skipped)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.stepscope")) if path.is_dir() else [path]


def _entry(path: Path, told: Mapping[str, Any]) -> Entry:
    """KeyError, TypeError or ValueError where `told` is no result of a test."""
    predicted = _figures(told["prediction"], "speedup", "low", "high")
    ratio, score = _figures(told["ratio"], "median", "low", "high"), str(told["score"])
    if score not in SCORED:
        raise ValueError(score)
    error = None
    if score != "not scored":
        if predicted is None or ratio is None:
            raise TypeError("a score of nothing")
        error = abs(math.log(predicted["speedup"] / ratio["median"]))
    remedy = {key: told["remedy"][key] for key in ("setting", "from", "to")}
    return Entry(path.name, str(mapping(told["finding"]).get("rule", "")), remedy, predicted, ratio,
                 str(told["outcome"]), score, error)


def _figures(told: Any, *names: str) -> Mapping[str, Any] | None:
    """An object that has numbers under these names, or none at all."""
    if told is None:
        return None
    for name in names:
        if isinstance(told[name], bool) or not isinstance(told[name], int | float):
            raise TypeError(name)
    return mapping(told)
