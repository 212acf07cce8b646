"""Somebody else uses the same GPU: by NVML's list, by who computes, and by memory that is nobody's here.

In a container the driver tells pids of the host: this loop's own process then looks like somebody
else's. So where the list does not hold the loop, one foreign process in it is taken for the loop.
"""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.readings import FOREIGN, User
from profiler.rules.base import Evidence, Finding, Outcome
from profiler.units import format_bytes

NAME = "other_processes"
TITLE = "Other processes"
CONTEXT = 2 << 30  # bytes of a process beside torch's: context, libraries, communication
IDLE = 0.01  # of the time that a kernel ran, below which a process did not compute
SHOWN = 5


def check(facts: Facts) -> Outcome:
    """Lacks NVML's process list where there is none (containers often hide it)."""
    if facts.device is None:
        return Outcome(lacks=facts.no_gpu)
    others, users = facts.live.get("gpu.other_processes"), facts.readings.users
    memory = facts.readings.memory
    held = memory.elsewhere if memory else None
    hidden = bool(users) and all(user.whose == FOREIGN for user in users)
    if others is None:
        if held is not None and held > CONTEXT:
            return _finding(facts, None, (), held)
        return Outcome(lacks="NVML listed no processes")
    foreign = others - 1 if hidden else others
    if foreign < 0.05:
        if held is not None and held > CONTEXT:
            return _finding(facts, None, (), held)
        if hidden:
            return Outcome(lacks="the list of processes is of another namespace (a container), and the only "
                                 "one in it may be this loop")
        return Outcome(ruled_out="none on this GPU")
    strangers = () if hidden else tuple(user for user in users if user.whose != "target")
    return _finding(facts, foreign, strangers, held)


def _finding(facts: Facts, others: float | None, users: tuple[User, ...], held: float | None) -> Outcome:
    """`others`: processes, None where only the memory tells of them."""
    evidence, against = [], []
    known = [user.busy for user in users if user.busy is not None]
    all_known = bool(users) and len(known) == len(users)
    idle = all_known and sum(known) < IDLE
    if others is not None:
        evidence.append(Evidence("Processes of others, mean over the steady steps", others, "count", "NVML"))
        if idle:
            against.append(Evidence("None of them computed: they hold memory alone", source="NVML"))
        elif not all_known:
            against.append(Evidence("They may hold memory and do nothing: NVML does not say who computes"))
    for user in users[:SHOWN]:
        name = f"Process {user.pid}{f' {user.name}' if user.name else ''}"
        rows = ((f"{name}, utilization", user.busy, "share"), (f"{name}, memory", user.bytes, "B"))
        evidence += [Evidence(text, value, unit, "NVML") for text, value, unit in rows if value is not None]
    if others is not None and not users:
        against.append(Evidence("Their pids are of another namespace (a container): one of the list is taken "
                                "for this loop", source="NVML"))
    if held is not None:
        evidence.append(Evidence("Memory in use that is not this run's tensors", held, "B", "NVML, probe"))
    if others is None:
        against.append(Evidence("No other process is listed, as in a container; the memory may be this "
                                "program's own, beside torch", source="NVML"))
    if others is None:
        title = f"{format_bytes(held)} of this GPU's memory are not this run's tensors"
    elif idle:
        title = "Other processes hold memory of this GPU"
    else:
        title = f"Other processes {'compute on' if sum(known) >= IDLE else 'use'} this GPU"
    advice = "They take none of the GPU's time; end them where their memory is needed." if idle else \
        "Run alone, or on another GPU: step times and utilization are not this loop's alone."
    return Outcome((Finding(
        NAME, title, "warning" if others is not None and not idle else "info",
        evidence=tuple(evidence), counter_evidence=tuple(against), advice=advice),))
