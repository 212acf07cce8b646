"""Record the machine, or a process that runs already, without starting anything.

    stepscope monitor --duration 60
    stepscope monitor --pid 4711

Ends with Ctrl-C, after --duration, or when the process has ended. Nothing is
sent to the process: it is only looked at from outside, so there are no steps.
"""

from __future__ import annotations

import argparse

from profiler.cli import _recording
from profiler.errors import TargetError, UsageError
from profiler.record.options import Options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pid", type=int, metavar="PID", help="a process to watch, with its descendants")
    _recording.add_common(parser)


def run(args: argparse.Namespace) -> int:
    with _recording.errors_told(args):
        _recording.recorded(_options(args))
    return 0


def _options(args: argparse.Namespace) -> Options:
    from profiler.run.alive import process_start

    _recording.check_common(args)
    if args.pid is not None and args.pid < 1:
        raise UsageError(f"--pid {args.pid} is no process number", "List processes with ps")
    if args.pid is not None and process_start(args.pid) is None:
        raise TargetError(f"there is no process {args.pid}", "List processes with ps")
    name = args.name or (f"process {args.pid}" if args.pid is not None else "this machine")
    return Options(
        output=_recording.output_path(args.output, name, args.force),
        overwrite=args.force and args.output is not None, renumber=args.output is None,
        pid=args.pid, name=name, notes=args.notes, rate_hz=args.rate, duration_s=args.duration,
        control=args.control, json_result=args.json)
