"""Turn torch.profiler traces into a run file.

    stepscope import TRACE ... -o FILE

A trace is plain or compressed; several files, a tar of them or a folder become one
run with one process for each rank. The originals are kept inside the run, with what
was found out about them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from profiler.cli import _imported, _traces
from profiler.cli._common import print_json
from profiler.errors import UsageError, one_line
from profiler.rules.base import plural
from profiler.rules.trace.diagnosis import diagnose
from profiler.rules.words import verdict_title


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", metavar="TRACE", type=Path, nargs="+", help="files, a tar, or a folder")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True,
                        help="the run file to write")
    parser.add_argument("--force", action="store_true", help="write over an existing run file")
    parser.add_argument("--name", default="", metavar="TEXT", help="a name for the run")
    parser.add_argument("--no-what-if", action="store_true", help="no replay of the steps, no predictions")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    output: Path = args.output
    if not output.parent.is_dir():
        raise UsageError(f"the folder {output.parent} does not exist",
                         "Make it, or name another file with -o")
    if output.exists() and not args.force:
        raise UsageError(f"{output} exists", "Name another file with -o, or use --force")
    originals = _traces.files(args.traces)
    if any(output.exists() and output.samefile(path) for path in originals):
        raise UsageError(f"{output} is the trace itself", "Name another file with -o")
    for path in originals:
        if not path.is_file():
            raise UsageError(f"{path} is no regular file, and the original is kept in the run",
                             "Save it to a file first")
    traces = _traces.read(originals, "Importing")
    found = diagnose(traces, str(output), what_if=not args.no_what_if)
    told = found.to_json()
    _imported.write(output, originals, found, told, name=args.name, overwrite=args.force)
    if args.json:
        print_json({"schema": 1, "run": str(output), "processes": len(traces), "verdict": told["verdict"],
                    "steps": told["steps"], "notes": told["notes"]})
    else:
        _tell(output, told, len(traces))
    return 0


def _tell(output: Path, told: dict[str, Any], processes: int) -> None:
    count = told["steps"]["count"]
    what = f"{plural(count, 'step')} counted by {told['steps']['rule']}" if count else "no steps"
    ranks = f", {processes} processes" if processes > 1 else ""
    print(f"{one_line(str(output))}: {what}{ranks}, {verdict_title(told['verdict']).lower()}")
    for note in told["notes"]:
        print(f"Note: {one_line(note)}.")
