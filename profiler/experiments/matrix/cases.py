"""What has a known answer: faults to order, the healthy controls beside them, and labelled traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiler.catalog import FaultInfo, WorkloadInfo
from profiler.errors import UsageError
from profiler.experiments.program import Program
from profiler.paths import own_command
from profiler.rules.trace.verdict import gains

BASE = {"size": "smallest", "device": "cpu"}  # the answers that faults state are of such runs
HEALTHY = "compute_bound"  # the verdict of every control
RANKS = 2
TRACE_STEPS = 8
TRUTH = "truth.jsonl"
FAULT, CONTROL, TRACE = "fault", "control", "trace"
NEEDS_GPU = "needs a GPU; the runs of the matrix are on the CPU"


@dataclass(frozen=True)
class Case:
    """Something to diagnose, with its answer.

    `verdicts`: any of them is right. `rule`: whose finding must name a fault. `program`: what
    is recorded, with a trace window of `trace_steps`; None where `trace`, a file, is there already.
    `speedups`: what the removal of a cost would give in truth, by the rule that blames it.
    """

    kind: str
    name: str
    verdicts: tuple[str, ...]
    rule: str = ""
    program: Program | None = None
    trace_steps: int | None = None
    trace: Path | None = None
    speedups: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What tells whether an older result is of the same case."""
        program = self.program
        return {"kind": self.kind, "name": self.name, "verdicts": list(self.verdicts), "rule": self.rule,
                "settings": dict(program.settings) if program else {},
                "command": list(program.command) if program else [], "trace_steps": self.trace_steps,
                "speedups": dict(self.speedups)}


def control_settings(fault: FaultInfo, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Of the healthy run beside a fault, on the CPU. `more` goes over them."""
    return {**BASE, **fault.control, **(more or {})}


def faulty_settings(fault: FaultInfo, control: Mapping[str, Any], strength: float = 1.0) -> dict[str, Any]:
    """Of the run with the fault, beside the control with these settings."""
    return {**control, **fault.faulty, fault.name: strength}


def program(fault: FaultInfo, settings: Mapping[str, Any], cwd: Path) -> Program:
    """The fault's first workload with these settings; under torchrun where it needs several ranks."""
    workload = fault.workloads[0]
    if fault.needs != "ranks":
        return Program(cwd, workload, dict(settings))
    pairs = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    script, *words = own_command("workload-run", workload, *pairs)[3:]  # torchrun adds the interpreter
    launcher = (sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}")
    return Program(cwd, command=(*launcher, script, *words))


def cases(faults: Iterable[FaultInfo], cwd: Path, workloads: Iterable[WorkloadInfo] = (),
          ) -> tuple[list[Case], dict[str, str]]:
    """Faults with their controls, and those that cannot act on the CPU: name -> reason.

    A control of several faults is one case. It is recorded as the fault is, with a trace
    window or without: a rule that needs one must be quiet beside it too. A run of each of the
    `workloads` that says which settings are healthy is a control as well.
    """
    found = [_healthy(info, cwd) for info in workloads if info.healthy]
    left_out = {}
    for fault in faults:
        if fault.needs == "cuda":
            left_out[fault.name] = NEEDS_GPU
            continue
        settings = control_settings(fault)
        window = TRACE_STEPS if fault.trace else None
        control = Case(CONTROL, _control_name(fault), (HEALTHY,), trace_steps=window,
                       program=program(fault, settings, cwd))
        if control not in found:
            found.append(control)
        found.append(Case(FAULT, fault.name, (fault.on_cpu,), fault.rule, trace_steps=window,
                          program=program(fault, faulty_settings(fault, settings), cwd)))
    return found, left_out


def _healthy(info: WorkloadInfo, cwd: Path) -> Case:
    """The same case as the control of a fault that has these settings."""
    return Case(CONTROL, _name(info.name, info.healthy), (HEALTHY,),
                program=Program(cwd, info.name, {**BASE, **info.healthy}))


def _control_name(fault: FaultInfo) -> str:
    """What is recorded: "language_model threads=1, traced"."""
    more = [f"{RANKS} ranks"] if fault.needs == "ranks" else []
    return ", ".join([_name(fault.workloads[0], fault.control), *more, *(["traced"] if fault.trace else [])])


def _name(workload: str, settings: Mapping[str, Any]) -> str:
    return " ".join([workload, *(f"{name}={value}" for name, value in settings.items())])


def labelled(folder: Path) -> list[Case]:
    """Traces with their truth: `truth.jsonl` has one object a line.

    `file` and `accept`, its verdicts, are needed; `what_if`, a list of {scenario, speedup}, is taken
    where it is there, unless `what_if_scored` is false. UsageError when it is not as said.
    """
    path = folder / TRUTH
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        found = [Case(TRACE, str(row["file"]), _accepted(row["accept"]), trace=folder / row["file"],
                      speedups=_speedups(row)) for row in rows]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}",
                         "Name a folder of labelled traces") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} is no list of labelled traces: {error!r}",
                         'Each line is like {"file": "a.json.gz", "accept": ["input_bound"]}') from error
    if wrong := [case.name for case in found if not (case.trace and case.trace.is_file() and case.verdicts)]:
        raise UsageError(f"{path}: {wrong[0]} is not there, or has no verdict")
    return found


def _accepted(told: Any) -> tuple[str, ...]:
    if not isinstance(told, list):  # of a word every letter would be a verdict
        raise TypeError("accept is no list")
    return tuple(map(str, told))


def _speedups(row: Mapping[str, Any]) -> dict[str, float]:
    """By rule, which in a trace has the name of its verdict. Of several scenarios the better one counts."""
    if not row.get("what_if_scored", True):
        return {}
    told = {str(item["scenario"]): float(item["speedup"]) for item in row.get("what_if") or ()}
    return {word: speedup for word, (speedup, _) in gains(told).items()}
