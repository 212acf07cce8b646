"""Internal: read the GPUs for a recording, or describe them. `stepscope record` and `doctor` start it."""

from __future__ import annotations

import argparse
import json
import os


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--describe", action="store_true", help="print what the driver tells, and end")
    parser.add_argument("--clock", default="0,0", help="monotonic and wall ns at the start of the run")
    parser.add_argument("--rate", type=float, default=10.0)
    parser.add_argument("--without", action="append", default=[], metavar="CALL",
                        help="a call that is not to be made: the library crashes in it")
    parser.add_argument("--target", type=int, help="pid of the root of the target's tree")


def run(args: argparse.Namespace) -> int:
    from profiler.record.clock import Clock
    from profiler.record.gpu_child import GpuChild, guard, leave_out

    fd = guard()
    if args.without:
        leave_out(args.without)
    if args.describe:
        from profiler.sources._gpus import describe

        os.write(fd, json.dumps(describe()).encode())
        os._exit(0)
    monotonic_ns, wall_ns = map(int, args.clock.split(","))
    GpuChild(fd, Clock((monotonic_ns, wall_ns)), args.rate, args.target).run()
    return 0
