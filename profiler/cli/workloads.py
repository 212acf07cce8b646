"""List the workloads that come with StepScope, their settings, and the faults to order.

    stepscope workloads                        one line each
    stepscope workloads image_classification   what it does, and its settings
    stepscope workloads slow_storage           what the fault does and brings, and the commands that show it
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby

from profiler import catalog
from profiler.catalog import FaultInfo, Setting, WorkloadInfo
from profiler.cli._common import plain, print_json, print_table

NEEDS = {"cpu": "acts on any machine", "cuda": "needs a GPU", "ranks": "needs several processes"}

ONE = "stepscope record --workload"
RANKS = "stepscope record -- torchrun --nproc-per-node 2 --no-python stepscope workload-run"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="tell about this one: a workload or a fault")
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object")


def run(args: argparse.Namespace) -> int:
    infos, faults = _chosen(args.name)
    if args.json:
        print_json({"schema": 1, "workloads": plain(infos), "faults": plain(faults)})
    elif not args.name:
        _print_list(infos, faults)
    elif infos:
        _print_workload(infos[0], faults)
    else:
        _print_fault(faults[0])
    return 0


def _chosen(name: str | None) -> tuple[list[WorkloadInfo], list[FaultInfo]]:
    """All; or a workload with the faults that can act in it; or a fault."""
    if not name:
        return catalog.workloads(), catalog.faults()
    found = catalog.named(name)
    if isinstance(found, FaultInfo):
        return [], [found]
    return [found], [catalog.fault(fault) for fault in found.faults]


def _print_list(infos: Sequence[WorkloadInfo], faults: Sequence[FaultInfo]) -> None:
    width = max(len(name) for name in [i.name for i in infos] + [f.name for f in faults])
    for group, members in groupby(infos, key=lambda info: info.group):
        print(group)
        for info in members:
            tags = f"  ({', '.join(info.tags)})" if info.tags else ""
            print(f"  {info.name:<{width}}  {info.summary}{tags}")
        print()
    print("Faults to order, each a setting: 0 is off, 1 the default strength")
    for fault in faults:
        print(f"  {fault.name:<{width}}  {fault.summary}")
    print()
    print("stepscope workloads NAME tells about one: settings with defaults and ranges, what a fault brings")
    print("stepscope record --workload NAME --set size=smallest --set batch_size=8 runs one")


def _print_workload(info: WorkloadInfo, faults: Sequence[FaultInfo]) -> None:
    print(f"{info.title} ({info.group})\n\n{info.doc}\n")
    if info.data:
        print(f"--data takes {info.data}\n")
    brings = {fault.name: f"{fault.summary}: {_verdict(fault)}" for fault in faults}
    for group, settings in groupby(info.settings, key=lambda setting: setting.group):
        print(group)
        rows = [(s.name, _text(s.default), s.unit, _range(s), brings.get(s.name, s.help)) for s in settings]
        print_table(rows, indent="  ")
        print()
    print("Sizes")
    print_table([(f"size={name}", _assigned(changes) or "the defaults")
                 for name, changes in info.sizes.items()], indent="  ")


def _print_fault(fault: FaultInfo) -> None:
    print(f"{fault.title}: {NEEDS.get(fault.needs, fault.needs)}\n\n{fault.doc}\n")
    print(f"Acts in {', '.join(fault.workloads)}")
    command = f"{RANKS if fault.needs == 'ranks' else ONE} {fault.workloads[0]}"
    control = {"size": "smallest", **fault.control}
    for title, values in (("Healthy control", control),
                          ("With the fault", {**control, **fault.faulty, fault.name: 1})):
        pairs = [word for pair in values.items() for word in ("--set", _assigned(dict([pair])))]
        print(f"\n{title}\n  {command} {shlex.join(pairs)}")


def _verdict(fault: FaultInfo) -> str:
    return fault.verdict if fault.on_cpu == fault.verdict else f"{fault.verdict} (CPU: {fault.on_cpu})"


def _assigned(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(setting: Setting) -> str:
    if setting.choices:
        return " | ".join(map(str, setting.choices))
    if setting.type == "bool":
        return "true | false"
    if setting.minimum is None or setting.maximum is None:
        return ""
    return f"{setting.minimum:g} to {setting.maximum:.10g}"
