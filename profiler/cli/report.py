"""Write a report of a run: one HTML file with verdict, charts, findings and settings.

    stepscope report RUN ...           an .html beside each run
    stepscope report RUN -o FILE

The file needs nothing else, follows the reader's light or dark theme, and prints.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from profiler.cli import _traces
from profiler.cli._price import add_price
from profiler.errors import RunError, TraceError, UsageError, one_line
from profiler.report import html
from profiler.rules.energy import Price
from profiler.rules.trace import stored
from profiler.run.reader import Run

FORMATS = ("html",)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run files")
    parser.add_argument("--format", default="html", metavar="FORMAT", help="html, the only one so far")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="the file to write, with several runs a folder (default: beside each run)")
    add_price(parser)


def run(args: argparse.Namespace) -> int:
    if args.format not in FORMATS:
        raise UsageError(f"there is no report format {args.format} yet", "Use --format html")
    several = len(args.runs) > 1
    if several and args.output is not None and not args.output.is_dir():
        raise UsageError(f"{args.output} is not a folder", "Several reports need a folder for -o")
    for path in args.runs:
        print(one_line(str(report(path, args.output, args.price))))
    return 0


def report(path: Path, output: Path | None = None, price: Price | None = None) -> Path:
    """Write the report of the run at `path` and give where it is. What its traces say is kept in the run.

    `price`: of a kWh; without it no cost is told.
    """
    with Run.open(path) as opened:
        fresh = stored.stored(opened) is not None or not stored.attachments(opened)
    if not fresh:
        with suppress(TraceError):  # the report says that it is not there
            _traces.analysed(path)
    with Run.open(path) as opened:
        name = path.stem + html.ENDING
        target = path.with_name(name) if output is None else output / name if output.is_dir() else output
        if not target.parent.is_dir():
            raise RunError(f"the folder {target.parent} does not exist",
                           "Make it, or name another file with -o")
        if target.exists() and target.samefile(path):
            raise UsageError(f"{target} is the run itself", "Name another file with -o")
        return html.write(opened, target, price)
