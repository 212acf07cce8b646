"""The running score in print: one line for each experiment, and what they come to."""

from __future__ import annotations

from pathlib import Path

from profiler.cli._common import fitted, plain, print_json, print_table, shown
from profiler.errors import UsageError, one_line
from profiler.experiments.scoreboard import SCORED, scoreboard
from profiler.paths import runs_dir
from profiler.rules.base import plural
from profiler.rules.words import prediction, remedy
from profiler.units import format_number, format_ratio

WIDEST = 44  # letters of a run's name


def print_scoreboard(paths: list[Path], as_json: bool) -> None:
    """Of run files and folders, by default the folder of runs. UsageError for a path that is not there."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"no such file or folder: {path}")
    folders = paths or [runs_dir()]
    told = plain(scoreboard([path for path in folders if path.exists()]).to_json())
    if as_json:
        print_json(told)
        return
    told = shown(told)
    rows = [[fitted(one["run"].removesuffix(".stepscope"), WIDEST), remedy(one["remedy"]),
             prediction(one["prediction"]).partition(",")[0], _measured(one["ratio"]), one["outcome"],
             one["score"]] for one in told["experiments"]]
    if rows:
        print_table(rows, ["run", "remedy", "predicted", "measured", "outcome", "score"])
        print()
    where = f"{plural(len(rows), 'experiment')} in {plural(told['runs'], 'run')}"
    print(f"{where} of {one_line(', '.join(map(str, folders)))}" if len(folders) < 3 else where)
    if rows:
        counts = (f"{told[word.replace(' ', '_')]} {word}" for word in SCORED)
        print(", ".join(counts))
    if told["median_error"] is not None:
        print(f"Median |log(predicted / measured)|: {format_number(told['median_error'], 3)}")
    if told["skipped"]:
        print(f"Skipped: {plural(told['skipped'], 'file')} that cannot be read as a run")


def _measured(ratio: dict[str, float] | None) -> str:
    return format_ratio(ratio["median"], (ratio["low"], ratio["high"])) if ratio else ""
