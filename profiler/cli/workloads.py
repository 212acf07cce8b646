"""List the workloads that come with StepScope, and their settings."""

from __future__ import annotations

import argparse
from itertools import groupby

from profiler import catalog
from profiler.catalog import Setting, WorkloadInfo
from profiler.cli._common import plain, print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="tell about this one, with its settings")
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object")


def run(args: argparse.Namespace) -> int:
    infos = [catalog.get(args.name)] if args.name else catalog.workloads()
    if args.json:
        print_json({"schema": 1, "workloads": [plain(info) for info in infos]})
    elif args.name:
        _print_one(infos[0])
    else:
        _print_list(infos)
    return 0


def _print_list(infos: list[WorkloadInfo]) -> None:
    width = max(len(info.name) for info in infos)
    for group, members in groupby(infos, key=lambda info: info.group):
        print(group)
        for info in members:
            tags = f"  ({', '.join(info.tags)})" if info.tags else ""
            print(f"  {info.name:<{width}}  {info.summary}{tags}")
            print(f"  {'':<{width}}  {', '.join(s.name for s in info.settings)}")
        print()
    print("stepscope workloads NAME tells about one, its settings with defaults and ranges")
    print("stepscope record --workload NAME --set size=smallest --set workers=2 runs one")


def _print_one(info: WorkloadInfo) -> None:
    print(f"{info.title} ({info.group})\n\n{info.doc}\n")
    if info.data:
        print(f"--data takes {info.data}\n")
    for group, settings in groupby(info.settings, key=lambda setting: setting.group):
        print(group)
        rows = [(s.name, _default(s), s.unit, _range(s), s.help) for s in settings]
        print_table(rows, indent="  ")
        print()
    print("Sizes")
    print_table([(f"size={name}", " ".join(f"{k}={v}" for k, v in changes.items()) or "the defaults")
                 for name, changes in info.sizes.items()], indent="  ")


def _default(setting: Setting) -> str:
    return str(setting.default).lower() if setting.type == "bool" else str(setting.default)


def _range(setting: Setting) -> str:
    if setting.choices:
        return " | ".join(map(str, setting.choices))
    if setting.type == "bool":
        return "true | false"
    if setting.minimum is None or setting.maximum is None:
        return ""
    return f"{setting.minimum:g} to {setting.maximum:.10g}"
