"""What `record` and `monitor` share: options, their checks, and what is told at the end."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from profiler.cli import _streams
from profiler.errors import ProfilerError, RunError, UsageError
from profiler.paths import runs_dir
from profiler.record.options import DEFAULT_RATE_HZ, Options, Outcome, signal_name
from profiler.run.files import free_name

MIN_RATE_HZ, MAX_RATE_HZ = 0.1, 100.0


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that both commands have."""
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="the run file to write (default: a new one in the folder of runs)")
    parser.add_argument("--force", action="store_true", help="write over an existing run file")
    parser.add_argument("--duration", type=float, metavar="S", help="end after so many seconds")
    parser.add_argument("--rate", type=float, default=DEFAULT_RATE_HZ, metavar="HZ",
                        help="samples per second, 0.1 to 100 (default 10)")
    parser.add_argument("--name", default="", metavar="TEXT", help="a name for the run")
    parser.add_argument("--notes", default="", metavar="TEXT", help="notes to keep with the run")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--control", action="store_true",
                        help="take commands as JSON lines on standard input, tell events as JSON lines on "
                             "standard output; end of input ends the recording")


def check_common(args: argparse.Namespace) -> None:
    """UsageError for a rate or duration that cannot be."""
    if not MIN_RATE_HZ <= args.rate <= MAX_RATE_HZ:
        raise UsageError(f"--rate {args.rate:g} is out of range",
                         f"It is {MIN_RATE_HZ:g} to {MAX_RATE_HZ:g} per second")
    if args.duration is not None and not 0 < args.duration < math.inf:
        raise UsageError(f"--duration {args.duration:g} is not a time", "Give seconds above 0")
    if args.json and args.control:
        raise UsageError("--json and --control both want standard output", "Use one of them")


def output_path(given: Path | None, name: str, force: bool) -> Path:
    """The run file to write. RunError when it cannot be."""
    if given is None:
        return _new_path(name)
    try:
        return _given_path(given, force)
    except OSError as error:  # too long a name, a folder closed to us, a working directory that is gone
        raise RunError(f"cannot write {given}: {error.strerror}", "Name another file with -o") from None


def _given_path(given: Path, force: bool) -> Path:
    path = given.absolute()
    if ".." in path.parts:  # the folder before it may be removed, or a link to it turned, while we record
        path = path.parent.resolve() / path.name
    if path.is_dir():
        raise RunError(f"{given} is a folder", "Name a file in it with -o")
    if not path.parent.is_dir():
        raise RunError(f"the folder {given.parent} does not exist", "Make it, or name another file with -o")
    if path.exists() and not force:
        raise RunError(f"{given} exists already", "Name another file with -o, or add --force")
    if path.exists() and not _may_be_a_run(path):
        raise RunError(f"{given} is not a run file and is left as it is", "Name another file with -o")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise RunError(f"the folder {given.parent} cannot be written to", "Name another file with -o")
    return path


def _may_be_a_run(path: Path) -> bool:
    if not path.is_file():  # a device would be replaced by our file, a pipe waits for a writer
        return False
    with path.open("rb") as file:
        return file.read(16) in (b"", b"SQLite format 3\0")


def _new_path(name: str) -> Path:
    folder = runs_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"the folder of runs {folder} cannot be made: {error.strerror}",
                       "Name a file with -o, or set STEPSCOPE_RUNS") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RunError(f"the folder of runs {folder} cannot be written to",
                       "Name a file with -o, or set STEPSCOPE_RUNS")
    now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    stem = f"{now}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-.')[:60] or 'run'}"
    return free_name(folder / f"{stem}.stepscope")


def recorded(options: Options) -> Outcome:
    """Record, and tell how it ended: notes on stderr, with --json one object on stdout."""
    from profiler.record.recorder import record

    outcome = record(options, note)
    tell(options, outcome)
    return outcome


@contextlib.contextmanager
def errors_told(args: argparse.Namespace) -> Iterator[None]:
    """With --control, an error that keeps the recording from beginning is an event as well."""
    try:
        yield
    except ProfilerError as error:
        if args.control:
            print(json.dumps({"event": "error", "message": str(error)}), flush=True)
        raise


def note(text: str) -> None:
    """A line for the user on stderr, wherever that still goes."""
    _streams.say(text)


def tell(options: Options, outcome: Outcome) -> None:
    """How it ended: notes on stderr, with --json one object on stdout."""
    if outcome.code is not None and outcome.code < 0 and outcome.reason not in ("steps", "duration"):
        note(f"the command was ended by {signal_name(-outcome.code)}")
    elif outcome.code is None and options.command and outcome.reason != "detached":
        note(f"the command could not be ended; it is process {outcome.pid}")
    for text in outcome.told:
        note(text)
    if outcome.failed is not None:
        note(f"the recording is incomplete: {outcome.failed}")
    elif outcome.reason == "detached":
        note(f"the command goes on without being recorded; the run so far: {outcome.output}")
    else:
        watched = not options.control and sys.stderr is not None and sys.stderr.isatty()
        if watched and options.command and outcome.reason in ("steps", "duration"):  # Python told of a signal
            note(f"the command was ended after {outcome.steps} steps, as --{outcome.reason} asks")
        note(f"run file: {outcome.output}")
        if outcome.steps and watched:
            note(f"what holds it back: stepscope diagnose {shlex.quote(str(outcome.output))}")
    if options.json_result:
        try:
            print(json.dumps(summary(outcome), allow_nan=False), flush=True)
        except OSError as error:  # the status stays the command's
            _streams.drop_output()
            note(f"standard output cannot be written: {error.strerror}")


def summary(outcome: Outcome) -> dict[str, Any]:
    """What --json prints: times in seconds, `exit` as in the run file."""
    return {"schema": 1, "run": str(outcome.output), "state": outcome.state, "exit": outcome.exit_meta(),
            "steps": outcome.steps, "duration_s": outcome.duration_s, "failed": outcome.failed,
            "told": list(outcome.told)}
