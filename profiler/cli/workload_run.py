"""Internal: run a workload in this process. `stepscope record --workload NAME` starts it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from profiler import catalog
from profiler.errors import UsageError
from profiler.paths import cache_dir


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="see stepscope workloads")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--data", type=Path, help="the user's own data in place of made data")


def run(args: argparse.Namespace) -> int:
    info = catalog.get(args.name)
    values = catalog.parse_settings(info, args.settings)
    if args.data is not None:
        catalog.check_data(info.name, args.data)
    os.environ["STEPSCOPE_CACHE"] = str(cache_dir())
    workload = catalog.load(info.name)
    try:
        workload.run(catalog.make_settings(info.name, values), args.data)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "torchvision", "PIL"):
            raise
        raise UsageError(f"the workload {info.name} needs {error.name}, which is not installed",
                         'Run pip install "stepscope[workloads]"') from error
    except Exception as error:
        # By name: an error of the workload's own folder, or one that a loader worker passed on.
        if type(error).__name__ != "WorkloadError":
            raise
        raise UsageError(str(error).strip().rpartition("\n")[2].removeprefix(
            f"{type(error).__module__}.WorkloadError: ")) from error
    return 0
