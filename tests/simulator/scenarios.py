"""The program without one cost, by the table of definitions, section 4.

Each scenario is a change of the actions: what was drawn stays as it was drawn. Where the
table can be read in more than one way, the other readings stand beside the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulator import actions as A
from tests.simulator.actions import Action, Program
from tests.simulator.loop import COMPUTE, COPYING, REDUCING

Step = list[Action]
Change = Callable[[Step], Step]
HOST = (
    A.WORK,
    A.CALL,
    A.LAUNCH,
    A.GRAPH,
    A.MEMSET,
    A.RECORD,
    A.WAIT,
    A.THREAD,
)  # what takes host time and waits
#                                                                                    for nothing
LAUNCHING = (A.OPERATOR, A.PYTHON, A.HANDOVER, A.REDUCE)
BUCKETS = 6


def changed(program: Program, change: Change) -> Program:
    return replace(program, steps=[change(step) for step in program.steps])


def _free(action: Action) -> Action:
    return action._replace(ns=0)


def launches(step: Step) -> tuple[int, int]:
    """Positions of the step's first and last kernel launch; (len, -1) without any."""
    rows = [k for k, a in enumerate(step) if a.op in (A.LAUNCH, A.GRAPH)]
    return (rows[0], rows[-1]) if rows else (len(step), -1)


def no_input_wait(step: Step) -> Step:
    return [a._replace(info="ready") if a.op == A.FETCH else a for a in step]


def no_transfer(step: Step) -> Step:
    return [a for a in step if a.role != A.BATCH]


def overlapped_transfer(rate: float = 1.0, call_ns: int = 8000) -> Change:
    """Copies of the batch on a stream of their own, `rate` times as fast; a step computes on those of the
    step before."""

    def change(step: Step) -> Step:
        if not any(a.op == A.COPY and a.role == A.BATCH and a.stream != COPYING for a in step):
            return step
        event = ("ahead",)
        wait = [
            Action(A.RECORD, 1600, "cudaEventRecord", stream=COPYING, info=event),
            Action(A.WAIT, 1800, "cudaStreamWaitEvent", stream=COMPUTE, info=event),
        ]
        rest = []
        for a in step:
            if a.role == A.BATCH and a.op == A.SYNC:
                continue
            if a.role == A.BATCH and a.op == A.COPY:
                a = a._replace(
                    stream=COPYING,
                    ns=min(a.ns, call_ns),
                    run=int(a.run * rate),
                    info=a.info._replace(mode="async"),
                )
            rest.append(a)
        return wait + rest

    return change


def no_sync(own: bool = True) -> Change:
    """Waits for the device return at once. `own`: the call itself still costs its own time."""

    def change(step: Step) -> Step:
        result = []
        for a in step:
            if a.op == A.SYNC and a.role not in (A.BATCH, A.SAVE):
                a = a._replace(info=False, ns=a.ns if own else 0)
            elif a.op == A.COPY and a.role == A.SCALAR:
                blocked = a.info.mode == "block"
                a = a._replace(info=a.info._replace(mode="async"), ns=a.ns if own or not blocked else 0)
            result.append(a)
        return result

    return change


def no_launch_overhead(python: bool = True) -> Change:
    """`python`: time between operators goes too."""
    roles = LAUNCHING if python else tuple(role for role in LAUNCHING if role != A.PYTHON)

    def change(step: Step) -> Step:
        first, last = launches(step)
        if last < 0:
            return step
        result = [
            _free(a) if first <= k <= last and a.op in HOST and a.role in roles else a
            for k, a in enumerate(step)
        ]
        result.insert(first, Action(A.WORK, 25_000))
        return result

    return change


def no_host_work(python: bool = False, operators: bool = False) -> Change:
    """Around the launches. `python`: time between operators goes too, also between the launches; `operators`:
    what lies of the first operator before its launch, and of the last one after it, and memset calls."""
    roles = LAUNCHING if operators else (A.PYTHON, A.HANDOVER)

    def change(step: Step) -> Step:
        first, last = launches(step)
        result = []
        for k, a in enumerate(step):
            outside = (k < first or k > last) and a.role in roles
            between = python and a.role == A.PYTHON
            result.append(_free(a) if a.op in HOST and (outside or between or a.role == A.NAMED) else a)
        return result

    return change


def no_allocator(step: Step) -> Step:
    return [a for a in step if a.op != A.ALLOC]


def no_communication(step: Step) -> Step:
    return [a._replace(run=0) if a.op == A.LAUNCH and a.info.communication else a for a in step]


def overlapped_communication(by_time: bool = True) -> Change:
    """One collective after backward becomes six equal ones, ready evenly over backward.

    Evenly in the device's time or in launches. Collectives that are in buckets already stay.
    """

    def change(step: Step) -> Step:
        reduces = [k for k, a in enumerate(step) if a.op == A.LAUNCH and a.info.communication]
        turns = [k for k, a in enumerate(step) if a.op == A.THREAD]
        if len(reduces) != 1 or not turns or reduces[0] < turns[-1]:
            return step
        begin, end, collective = turns[-2], turns[-1], step[reduces[0]]
        rows = [k for k in range(begin, end) if step[k].op == A.LAUNCH]
        weights = [step[k].run if by_time else 1 for k in rows]
        total, so_far, at = sum(weights), 0, []
        for k, weight in zip(rows, weights, strict=True):
            so_far += weight
            while len(at) < BUCKETS and so_far * BUCKETS >= (len(at) + 1) * total:
                at.append(k)
        result = []
        for k, a in enumerate(step):
            result.append(a._replace(run=0) if k == reduces[0] else a)
            for number in [n for n, row in enumerate(at) if row == k]:
                event = ("bucket", number)
                result += [
                    Action(A.RECORD, 0, "", stream=COMPUTE, info=event),
                    Action(A.WAIT, 0, "", stream=REDUCING, info=event),
                    collective._replace(ns=0, run=collective.run // BUCKETS),
                ]
        return result

    return change


def compute_half(step: Step) -> Step:
    result = []
    for a in step:
        if a.op == A.LAUNCH and not a.info.communication:
            a = a._replace(run=a.run // 2)
        elif a.op == A.GRAPH:
            a = a._replace(info=[kernel._replace(run=kernel.run // 2) for kernel in a.info])
        result.append(a)
    return result


SCENARIOS: dict[str, tuple[Change, dict[str, Change]]] = {
    "no_input_wait": (no_input_wait, {}),
    "overlapped_transfer": (overlapped_transfer(), {}),
    "no_transfer": (no_transfer, {}),
    "no_sync": (no_sync(), {"the calls themselves cost nothing": no_sync(False)}),
    "no_launch_overhead": (
        no_launch_overhead(),
        {"Python between operators stays": no_launch_overhead(False)},
    ),
    "no_host_work": (
        no_host_work(),
        {
            "Python between operators goes too": no_host_work(True),
            "operators around the launches go too": no_host_work(operators=True),
        },
    ),
    "no_allocator": (no_allocator, {}),
    "overlapped_communication": (
        overlapped_communication(),
        {"buckets ready evenly over the launches": overlapped_communication(False)},
    ),
    "no_communication": (no_communication, {}),
    "compute_half": (compute_half, {}),
}
