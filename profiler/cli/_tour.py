"""The tour without the window: record, read the verdict, test the remedy, write a report."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.cli._common import Progress, plain, print_table
from profiler.cli._experiment import experiment, print_experiment
from profiler.cli.report import report
from profiler.errors import TargetError, UsageError
from profiler.experiments.child import Child
from profiler.experiments.plan import make_plan
from profiler.metrics import stage_title
from profiler.paths import runs_dir
from profiler.record.start import record_command
from profiler.rules.verdict import diagnose
from profiler.rules.words import prediction, remedy, verdict_title
from profiler.run.reader import Run
from profiler.run.results import append_result
from profiler.units import format_ms, format_rate

WORKLOAD = "input_starved"
STEPS, PAIRS = 60, 3  # enough for a claim, and for two cores to be done within the minute
USUAL_S, LIMIT_S = 8.0, 120.0  # of the first recording


def tour(given: Path | None) -> int:
    """The four phases, each announced in a line. `given`: where run and report go. The exit status."""
    path = _free(_folder(given))
    _phase(1, f"record {WORKLOAD}, a small network whose pictures come from slow storage, for {STEPS} steps")
    _record(path)
    _phase(2, "say what holds it back")
    with Run.open(path) as opened:
        diagnosis = diagnose(opened)
    told = plain(diagnosis.to_json())
    append_result(path, "diagnosis", told)
    _print_verdict(told)
    _phase(3, "test the suggestion: pairs of recordings without it and with it")
    interrupted = False
    try:
        with Run.open(path) as opened:
            plan = make_plan(opened, diagnosis, pairs=PAIRS)
    except UsageError as error:
        print(f"Nothing to test: {error}")
    else:
        result = experiment(path, plan)
        print_experiment(plain(result.to_json()))
        interrupted = result.interrupted
    _phase(4, "write the report")
    print(f"Run:    {path}")
    print(f"Report: {report(path)}")
    return 130 if interrupted else 0


def _phase(number: int, text: str) -> None:
    print(f"{chr(10) if number > 1 else ''}[{number}/4] {text}", flush=True)


def _record(path: Path) -> None:
    """The run of the tour; what the workload prints is kept in it."""
    argv = record_command(output=path, workload=WORKLOAD, settings={"steps": STEPS}, name="tour",
                          duration_s=LIMIT_S, control=True)
    with tempfile.TemporaryDirectory(prefix="stepscope-demo-") as log, Progress("Recording", USUAL_S) as bar:
        child = Child(argv, Path.cwd(), {}, Path(log) / "record.log")
        try:
            child.wait(LIMIT_S, bar.update)
        finally:
            child.end()
        complaint = child.complaint()
    if not path.exists():
        raise TargetError(f"the tour cannot be recorded: {complaint or 'the recorder ended'}")
    with Run.open(path) as opened:
        code = (opened.meta.get("exit") or {}).get("code")
        if code:
            output = b"".join(data for _, _, data in opened.output()).decode("utf-8", "replace")
            said = [line for line in output.splitlines() if line.strip()][-1:]
            raise TargetError(f"the workload ended with status {code}: {''.join(said).strip()}")


def _print_verdict(told: Mapping[str, Any]) -> None:
    """Figures as they are in the stored diagnosis."""
    print(f"{verdict_title(told['verdict'])} ({told['verdict']}): {told['headline']}.")
    print(f"Confidence {told['confidence']}: {told['reason']}.")
    if told["stages_ms"]:
        rows = [[stage_title(name), format_ms(ms * 1e6, unit=False)]
                for name, ms in told["stages_ms"].items()]
        rows.append(["step", format_ms(told["step_ms"]["usual"] * 1e6, unit=False)])
        print_table(rows, ["stage", "ms per step"], [1], indent="  ")
    if rate := told["throughput"]:
        print(f"  {format_rate(rate['value'], rate['unit'])}")
    for finding in told["findings"][:1]:
        if finding["remedy"]:
            gain = prediction(finding["prediction"])
            print(f"Try {remedy(finding['remedy'])}{', predicted ' + gain if gain else ''}.")


def _folder(given: Path | None) -> Path:
    folder = (given or runs_dir()).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be made: {error.strerror}",
                         "Name another one with -o") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the folder {folder} cannot be written to", "Name another one with -o")
    return folder


def _free(folder: Path) -> Path:
    stem = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S-tour")
    path, number = folder / f"{stem}.stepscope", 2
    while path.exists():
        path, number = folder / f"{stem}-{number}.stepscope", number + 1
    return path
