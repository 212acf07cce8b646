"""The sixty-second tour on a run that waits for its data; it needs no GPU.

    stepscope demo               in the window, where there is a display
    stepscope demo --headless    here: record, read the verdict, test the remedy, write a report

What it shows is measured on this machine, now. The run and its report are kept.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
from pathlib import Path

from profiler.cli import has_display
from profiler.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--headless", action="store_true", help="without the window")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR",
                        help="where run and report go (default: the folder of runs)")


def run(args: argparse.Namespace) -> int:
    if importlib.util.find_spec("torch") is None:
        raise UsageError("the tour needs torch, which is not installed",
                         'Run pip install "stepscope[workloads]"')
    if not args.headless and has_display() and importlib.util.find_spec("PySide6") is not None:
        if args.output is not None:
            os.environ["STEPSCOPE_RUNS"] = str(args.output.absolute())
        try:
            window = importlib.import_module("app.main")
        except ImportError as error:  # Qt is there, a library of the system's that it needs is not
            raise UsageError(f"the window cannot be opened: {error}",
                             "Try stepscope demo --headless") from error
        return int(window.run([], tour=True))
    from profiler.cli._tour import tour  # late: the window need not wait for it

    return tour(args.output)
