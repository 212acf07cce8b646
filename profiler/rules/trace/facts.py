"""All that rules and reports ask of a trace: each question is answered once, when it is first asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from profiler.analysis.summary import Spread, spread
from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.breakdown import completeness, partition
from profiler.analysis.trace.breakdown.completeness import Completeness
from profiler.analysis.trace.breakdown.labels import Labels
from profiler.analysis.trace.breakdown.partition import Partition
from profiler.analysis.trace.code.modules import Module, modules
from profiler.analysis.trace.code.operators import Operator, operators
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device.kernels import Kernels, Summary
from profiler.analysis.trace.device.occupancy import properties
from profiler.analysis.trace.efficiency.efficiency import Mfu, mfu
from profiler.analysis.trace.efficiency.work import Counted, counted
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.memory.memory import AllocatorCalls, Timeline, allocator_calls, timelines
from profiler.analysis.trace.path.critical_path import CriticalPath, critical_path
from profiler.analysis.trace.ranks.communication import Communication, communication
from profiler.analysis.trace.ranks.ranks import Process
from profiler.analysis.trace.steady import Steady, step_of_activities
from profiler.analysis.trace.steps import Steps
from profiler.replay import Replay, Scenario, predict
from profiler.rules.decision import Decision
from profiler.rules.trace.cupti import cause
from profiler.rules.trace.verdict import Shares, decide
from profiler.trace.merge import merged
from profiler.trace.model import NONE, Flags, Ints, Kind, Trace

NOT_ASKED = "no prediction was asked for"


class TraceFacts:
    """One process's trace and the answers. Times in ns.

    `what_if`: replay the steps. `scale_to_ns`: step time measured without the profiler,
    which host costs are scaled to; None for a bare trace. `parts`: the profiler windows that
    the trace was put together from; none for a single one. `left_out`: windows of the process
    that it does not hold, for they have no steps of the same kind. `printed`: output of the command.
    `cpu_ns`: CPU time of the loop's thread in a step (with the profiler, without), where that was measured.
    """

    def __init__(self, trace: Trace, what_if: bool = True, scale_to_ns: int | None = None,
                 parts: Sequence[TraceFacts] = (), left_out: int = 0, printed: str = "",
                 cpu_ns: tuple[float, float] | None = None) -> None:
        self.trace = trace
        self.parts = tuple(parts)
        self.left_out = left_out
        self.printed = printed
        self.what_if = what_if
        self.scale_to_ns = scale_to_ns
        self.cpu_ns = cpu_ns
        self._operators: dict[tuple[str, ...], tuple[Operator, ...]] = {}

    @classmethod
    def of(cls, windows: Sequence[Trace], what_if: bool = True, scale_to_ns: int | None = None,
           printed: str = "", cpu_ns: tuple[float, float] | None = None) -> TraceFacts:
        """Of at least one profiler window of a process. Those with steps by the same rule are pooled."""
        every = [cls(window, what_if, scale_to_ns, printed=printed, cpu_ns=cpu_ns) for window in windows]
        best = max(every, key=lambda facts: facts.usable)
        alike = [facts for facts in every if facts.found.per_step and facts.found.rule == best.found.rule]
        if len(alike) < 2:
            best.left_out = len(every) - 1
            return best
        return cls(merged([facts.trace for facts in alike]), what_if, scale_to_ns, alike,
                   len(every) - len(alike), printed, cpu_ns)

    @property
    def usable(self) -> tuple[bool, int]:
        """What makes a window worth more than another: that something can be claimed, and counted steps."""
        return not self.lacks and self.steps.per_step, int(self.steps.counted.sum())

    @cached_property
    def single(self) -> TraceFacts:
        """The window with most counted steps: what follows one step after the other is of it alone."""
        return max(self.parts, key=lambda facts: facts.usable, default=self)

    @cached_property
    def joined(self) -> Joined:
        return Joined(self.trace)

    @cached_property
    def found(self) -> Steps:
        """Every step, also those of which the kernels are not all there."""
        return steps.find(self.joined)

    @cached_property
    def complete(self) -> Completeness:
        found = completeness.check(self.joined, self.found)
        why = cause(self.printed) if found.notes and not len(self.trace.device) else ""
        launches = f"{int(found.launches.sum())} launches and no activity of a device"
        return replace(found, notes=(f"GPU activity not captured: {why}; {launches}",)) if why else found

    @cached_property
    def steps(self) -> Steps:
        """Steps of which those count that have all their kernels, unless none has."""
        counted = self.found.counted & ~self.complete.incomplete
        return replace(self.found, counted=counted) if counted.any() else self.found

    @cached_property
    def steady(self) -> Steady:
        return steady.steady(self.joined, self.steps)

    @cached_property
    def partition(self) -> Partition:
        return partition.partition(self.joined, self.steps, labels=self.labels)

    def partition_of(self, device: int) -> Partition:
        """That of any device of the process, of its own windows."""
        if device == self.partition.device:
            return self.partition
        return partition.partition(self.joined, self.steps, device, self.labels)

    @cached_property
    def labels(self) -> Labels:
        return Labels(self.joined, self.steps)

    @property
    def on_device(self) -> bool:
        """Whether the trace shows work on an accelerator, captured or not."""
        return len(self.trace.device) > 0 or bool(self.joined.kernel_launch.any())

    @cached_property
    def lacks(self) -> str:
        """Why nothing can be claimed; "" when something can."""
        if not len(self.trace.host) and not len(self.trace.device):
            return "the trace has no events with a duration"
        if not self.on_device and np.isin(self.trace.host.kind, (Kind.HOST_OTHER, Kind.OVERHEAD)).all():
            return "the trace has no operators, no calls of a runtime and no activities of a device"
        counted = self.found.counted
        if counted.any() and self.complete.incomplete[counted].all():
            return (self.complete.notes or ("the kernels of most launches are missing",))[0]
        return ""

    @cached_property
    def replay(self) -> Replay:
        if self.single is not self:
            return self.single.replay
        if not self.what_if:
            return Replay.none(NOT_ASKED)
        if self.lacks:
            return Replay.none(self.lacks)
        return predict(self.joined, self.steps, self.steady, scale_to_ns=self.scale_to_ns)

    @property
    def replayed(self) -> tuple[str, ...]:
        """Titles of what a replay gives; the critical path is one through a device."""
        return ("What-if replay", "Critical path") if self.on_device else ("What-if replay",)

    @cached_property
    def shares(self) -> Shares:
        """Means over the counted windows."""
        part = self.partition
        return Shares(part.mean_window_ns, part.mean_ns, part.mean_launching_ns, int(part.counted.sum()))

    @cached_property
    def decision(self) -> Decision:
        if self.lacks:
            return Decision("unknown", reason=self.lacks)
        replay = self.replay
        return decide(self.shares, replay.speedups(), replay.error, replay.withheld, self.step_ns)

    @property
    def step_ns(self) -> int | None:
        """Steady step time; None when the trace has no steps."""
        return self.steady.step_ns if self.steps.per_step and self.steady.step_ns > 0 else None

    @cached_property
    def spread(self) -> Spread | None:
        """Of the counted windows; None when the trace has no steps."""
        lengths = self.steady.lengths[self.steady.counted]
        return spread(lengths) if self.step_ns is not None and len(lengths) else None

    @property
    def properties(self) -> Mapping[str, Any]:
        """Of the device that the verdict is about; empty where the file does not tell."""
        return properties(self.trace, self.partition.device) if self.on_device else {}

    def scenario(self, *names: str) -> Scenario | None:
        """The one of the scenarios that predicts most; None when none of them is predicted."""
        found = [s for s in self.replay.scenarios if s.name in names]
        return max(found, key=lambda s: s.speedup, default=None)

    def cost(self, word: str) -> float:
        """Mean time per window of the classes that a verdict word stands for, ns."""
        shares = self.shares
        if word == "compute_bound":
            return shares.classes.get("compute", 0.0)
        total = sum(ns for name, ns in shares.classes.items()
                    if name not in ("compute", "host") and shares.word(name) == word)
        host = shares.classes.get("host", 0.0)
        parts = {"launch_bound": shares.launching, "host_bound": host - shares.launching}
        return total + parts.get(word, 0.0)

    @property
    def transfer_by_kind(self) -> Mapping[str, float]:
        """Mean exposed time of copies by kind, ns."""
        part = self.partition
        return {name: float(ns[part.counted].mean()) if part.counted.any() else 0.0
                for name, ns in part.transfer_by_kind.items()}

    # Tables are of the counted host windows: what was launched in them.

    @cached_property
    def host_windows(self) -> Ints:
        """Of every step: int64[n, 2]"""
        return np.stack((self.steps.start, self.steps.end), axis=1)

    @cached_property
    def windows(self) -> Ints:
        """int64[n, 2]"""
        return self.host_windows[self.steps.counted]

    @property
    def divisor(self) -> int | None:
        """By how many steps a table's sums are divided; None when the trace has no steps."""
        return len(self.windows) if self.steps.per_step else None

    @cached_property
    def activities(self) -> Flags:
        """Device rows that were launched in a counted step."""
        step = step_of_activities(self.joined, self.steps)
        return (step >= 0) & self.steps.counted[np.maximum(step, 0)]

    @cached_property
    def in_step(self) -> Flags:
        """Host rows that begin in a counted step."""
        step = self.steps.at(self.trace.host.start)
        return (step >= 0) & self.steps.counted[np.maximum(step, 0)]

    @cached_property
    def owners(self) -> Owners:
        return Owners(self.joined)

    @cached_property
    def kernels(self) -> Kernels:
        return Kernels(self.owners)

    def by(self, *keys: str) -> tuple[Operator, ...]:
        """Operators of the counted steps by keys of operators.KEYS."""
        if keys not in self._operators:
            self._operators[keys] = operators(self.owners, *keys, rows=self.in_step)
        return self._operators[keys]

    @property
    def has_stacks(self) -> bool:
        """Whether the trace tells who called: with operators, or by rows of Python functions."""
        host = self.trace.host
        return bool((host.stack >= 0).any() or (host.kind == Kind.PYTHON).any())

    @cached_property
    def kernel_summary(self) -> Summary:
        """Of the kernels that were launched in the counted steps."""
        return self.kernels.summary(self.activities)

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        return modules(self.owners, self.activities, self.in_step)

    @cached_property
    def work(self) -> Counted:
        return counted(self.owners)

    @cached_property
    def mfu(self) -> Mfu:
        return mfu(self.owners, self.work, self.steps, self.step_ns or NONE, self.partition.device)

    @cached_property
    def critical_path(self) -> CriticalPath | None:
        """None where there is no accelerator, nothing can be claimed, or no replay was asked for."""
        if self.single is not self:
            return self.single.critical_path
        if self.lacks or not self.on_device or not self.what_if:
            return None
        return critical_path(self.joined, self.steps, self.steady, self.labels)

    @cached_property
    def timelines(self) -> tuple[Timeline, ...]:
        return timelines(self.joined)

    @cached_property
    def allocator_calls(self) -> AllocatorCalls:
        return allocator_calls(self.joined, self.owners, self.windows)

    @cached_property
    def process(self) -> Process:
        return Process.of(self.joined, self.steps)

    @cached_property
    def communication(self) -> Communication:
        return communication(self.joined, self.windows, self.process.runs)
