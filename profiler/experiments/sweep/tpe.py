"""Random search that learns from what was measured: Optuna's TPE, where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from profiler.errors import UsageError
from profiler.experiments.sweep import search
from profiler.experiments.sweep.points import Axes, Range
from profiler.experiments.sweep.run import Bench
from profiler.experiments.sweep.subject import Point, Subject


def optuna() -> Any:
    """The library. UsageError where it is not installed."""
    try:
        module = importlib.import_module("optuna")  # optional: the base install does without
    except ImportError:
        raise UsageError("--sampler tpe needs optuna, which is not installed",
                         "Run pip install optuna, or leave --sampler away") from None
    module.logging.set_verbosity(module.logging.WARNING)
    return module


def explore(subject: Subject, axes: Axes, ranges: Mapping[str, Range], count: int, bench: Bench,
            points: list[Point], skipped: list[tuple[Point, str]]) -> None:
    """Measure up to `count` points once each, every next one drawn from what the earlier ones gave.

    They are put into `points`, and combinations that cannot be into `skipped`. A point
    that fails or needs too much memory is told to the sampler as failed.
    """
    library = optuna()
    sampler = library.samplers.TPESampler(seed=bench.seed % 2**32)
    study = library.create_study(direction="maximize", sampler=sampler)
    failed = library.trial.TrialState.FAIL
    for number in range(count):
        trial = study.ask()
        raw = {key: trial.suggest_categorical(key, list(values)) for key, values in axes.items()}
        for key, limits in ranges.items():
            if limits.whole:
                raw[key] = str(trial.suggest_int(key, int(limits.low), int(limits.high), log=limits.log))
            else:
                raw[key] = f"{trial.suggest_float(key, limits.low, limits.high, log=limits.log):.4g}"
        point = subject.typed(raw)
        if reason := subject.unfit(point):
            if (point, reason) not in skipped:
                skipped.append((point, reason))
            study.tell(trial, state=failed)
            continue
        if point not in points:
            points.append(point)
        runs = bench.journal.of("", point) or [bench.once(point, "", number, count)]
        first = runs[0]  # also when the journal has more: the same draws follow
        value = search.score_of(runs)(first) if first.counts else None
        if value is None or search.over(runs[:1], bench.most_memory):
            study.tell(trial, state=failed)
        else:
            study.tell(trial, value)
