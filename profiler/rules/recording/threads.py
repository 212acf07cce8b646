"""More threads want a core than there are cores: the loop's own thread has to wait for one.

On two cores, healthy loops wait for less than 1 % of the step, and 2 x cores threads that compute
beside the loop make it wait for 60 to 70 %.
"""

from __future__ import annotations

import math

from profiler.analysis.crowding import Crowding
from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms, plural

NAME = "threads"
TITLE = "Threads and cores"
WORTH = 0.05  # of the step: the wait for a core that the target's own threads cause
GRAVE = 0.15
IDLE = 0.1  # cores that loader workers keep busy with as good as nothing
SOURCE = "kernel scheduler"


def check(facts: Facts) -> Outcome:
    """Lacks the scheduler's counts; ruled out where the program's own threads cost less than 5 % of it."""
    summary, crowd = facts.summary, facts.crowding
    if summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if crowd is None:
        return Outcome(lacks="how long the loop's thread waits for a core was not measured")
    cost = hidden_by_device(facts, crowd.own * summary.step_ns)
    if cost < WORTH * summary.step_ns or not cost:
        return Outcome(ruled_out=f"{ms(cost):.1f} of {ms(summary.step_ns):.1f} ms per step: "
                                 f"{crowd.wanted:.1f} threads want a core, of {facts.cores}")
    remedy, advice = _remedy(facts, crowd)
    gain = summary.step_ns / max(summary.step_ns - cost, 0.001 * summary.step_ns)
    return Outcome((Finding(
        NAME, f"{crowd.wanted:.1f} threads on {plural(facts.cores, 'core')}",
        "error" if cost >= GRAVE * summary.step_ns else "warning", ms(cost),
        evidence=_evidence(facts, crowd), counter_evidence=_against(facts, crowd), remedy=remedy,
        advice=advice,
        prediction=Prediction("no_core_wait", gain, 1.0, gain, at_most=True) if remedy else None),))


def hidden_by_device(facts: Facts, waited_ns: float) -> float:
    """What a wait of the loop's thread costs a step, ns: under a busy device it costs nothing."""
    shares = facts.estimate
    if facts.on_device and shares is not None and shares.measured:
        return min(waited_ns, shares.host)
    return waited_ns


def waits(facts: Facts, crowd: Crowding) -> tuple[Evidence, ...]:
    """What the scheduler counted of the loop's thread."""
    assert facts.summary is not None
    step = facts.summary.step_ns
    found = [Evidence("The loop's thread could run and had no core, mean per step", ms(crowd.waiting * step),
                      "ms", SOURCE)]
    if facts.summary.thread_cpu is not None:
        found.append(Evidence("It ran, mean per step", ms(facts.summary.thread_cpu), "ms"))
    found.append(Evidence("Step", ms(step), "ms"))
    if "loop.switches" in facts.live:
        found.append(Evidence("Times it was put off its core, mean per step",
                              facts.live["loop.switches"] * step / 1e9, "count", SOURCE))
    return tuple(found)


def _evidence(facts: Facts, crowd: Crowding) -> tuple[Evidence, ...]:
    text = "Threads of the program that run or wait for a core" + ("" if crowd.counted else ", at least")
    found = [*waits(facts, crowd), Evidence(text, round(crowd.wanted, 1), "threads", SOURCE),
             Evidence("Cores it may use", facts.cores, "count", "host")]
    if facts.torch_threads is not None:
        found.append(Evidence("Threads of one operator", facts.torch_threads, "count"))
    if facts.workers:
        found.append(Evidence("Loader workers", facts.workers, "count"))
    if "OMP_NUM_THREADS" in facts.environment:
        found.append(Evidence("OMP_NUM_THREADS", str(facts.environment["OMP_NUM_THREADS"]),
                              source="environment"))
    return tuple(found)


def _against(facts: Facts, crowd: Crowding) -> tuple[Evidence, ...]:
    found = [Evidence("The work of the other threads is not gone: with fewer of them each has more to do")]
    if crowd.busy is not None:
        found.append(Evidence("Cores that other programs keep busy", crowd.busy, "cores", "host"))
    if facts.on_device and not (facts.estimate and facts.estimate.measured):
        found.append(Evidence("Without device times it is not known how much of it the device's work hides"))
    return tuple(found)


def _remedy(facts: Facts, crowd: Crowding) -> tuple[Remedy | None, str]:
    """A setting for the threads of one operator where they are too many beside all else, and advice.

    Each of them needs a core of its own: operators wait for the last of their threads, and those that
    wait spin. So a core that workers use in part is not counted on, nor what others use.
    """
    threads, ranks = facts.torch_threads, max(1, len(facts.ranks))
    workers = facts.live.get("target.workers_cpu", 0.0) if facts.workers else 0.0
    left = facts.cores - math.ceil(workers - IDLE) - round(crowd.busy or 0.0)
    fitting = max(1, int(left / ranks))
    if threads is None or threads <= fitting:
        who = "loader workers or other threads" if facts.workers else "threads of the program's own"
        return None, (f"The threads of operators fit: it is {who} that compute beside the loop. "
                      "Use fewer of them, or give the program more cores.")
    if facts.settings is not None:
        return Remedy("threads", facts.settings.get("threads", threads), fitting), ""
    told = facts.environment.get("OMP_NUM_THREADS")
    # Left alone torch takes a thread for each core at most: more are of the program's own making.
    if told != str(threads) if told is not None else threads > facts.machine_cores:
        return (Remedy("threads", threads, fitting),
                f"The program sets {threads} threads itself: torch.set_num_threads({fitting}) is enough.")
    return (Remedy("OMP_NUM_THREADS", told, str(fitting)),
            f"Where the program sets them itself: torch.set_num_threads({fitting}), in loader workers too.")
