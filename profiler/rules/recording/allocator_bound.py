"""Memory is fetched and given back all the time, of the system on a CPU run or of the driver on a GPU.

On a CPU by page faults: measured on two cores, healthy loops spend at most 2 % of the step in
the kernel, and a loop that fetches 34 MB anew in each step 40 to 50 %, 1.7 us for a page of 4 kB.
The C library gives back what it thinks a program has too much of, and fetches it again in the next step:
told to keep it, that loop took 18.5 instead of 34 ms of CPU time a step, one that fetched 22 MB 43 of 53.
"""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms

NAME = "allocator_bound"
TITLE = "Memory calls"
WORTH = 0.1  # of the step, kernel time for fetching memory
GRAVE = 0.15
PAGE_NS, HUGE_PAGE_NS = 4e3, 5e5  # at most, to fetch and clear a page of 4 kB or 2 MB
CALLS = 0.5  # of the driver a step; a steady loop that keeps its memory makes none
SOURCE = "kernel"
TUNABLES = "GLIBC_TUNABLES"
KEEP = "glibc.malloc.trim_threshold=4000000000:glibc.malloc.mmap_threshold=4000000000"


def check(facts: Facts) -> Outcome:
    """Lacks the counts of page faults, or those of torch's allocator; ruled out below 10 % of the step."""
    if facts.summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    return _of_driver(facts) if facts.on_device else _of_system(facts)


def _of_driver(facts: Facts) -> Outcome:
    """By torch's own counts: what the calls cost, only a trace tells."""
    calls = facts.readings.driver_calls
    if calls is None:
        return Outcome(lacks="calls of the allocator were not counted by this version of torch")
    if calls < CALLS:
        return Outcome(ruled_out=f"{calls:.2f} memory calls a step")
    evidence = [Evidence("Memory asked of the driver or given back, mean per step", calls, "count", "torch")]
    if (memory := facts.readings.memory) is not None:
        evidence.append(Evidence("Times that memory ran out and the cache was given back", memory.retries,
                                 "count", "torch"))
    return Outcome((Finding(
        NAME, "The allocator calls the driver in every step", "warning",
        evidence=tuple(evidence),
        counter_evidence=(Evidence("What the calls cost was not measured; a trace tells (--trace-steps 8)"),),
        advice="Do not call torch.cuda.empty_cache() in the loop, and leave memory free for the allocator to "
               "keep. Where sizes vary, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps."),))


def _of_system(facts: Facts) -> Outcome:
    summary, live = facts.summary, facts.live
    if summary is None or "loop.system" not in live or "loop.faults" not in live:
        return Outcome(lacks="the system does not count kernel time and page faults of the loop's thread")
    step = summary.step_ns
    system, faults = live["loop.system"] * step, live["loop.faults"] * step / 1e9
    page = HUGE_PAGE_NS if facts.machine.get("huge_pages") == "always" else PAGE_NS
    # What the loader does in the loop's thread is a matter of the data wait.
    cost = min(max(0.0, system - (summary.data_cpu or 0.0)), faults * page)
    # Where the cores are crowded all that the thread does takes so much longer.
    longer = 1 + live.get("loop.waiting", 0.0) * step / summary.thread_cpu if summary.thread_cpu else 1.0
    cost *= longer
    if cost < WORTH * step or not cost:
        return Outcome(ruled_out=f"{ms(cost):.1f} of {ms(step):.1f} ms per step, {faults:.0f} page faults")
    evidence = [Evidence("The loop's thread in the kernel, mean per step", ms(system), "ms", SOURCE),
                Evidence("Step", ms(step), "ms"),
                Evidence("Page faults of the thread, mean per step", round(faults), "count", SOURCE)]
    if page == PAGE_NS:
        evidence.append(Evidence("Memory fetched by them, mean per step", faults * 4096 / 1e6, "MB", SOURCE))
    if longer > 1.05:
        evidence.append(Evidence("Work takes longer by waiting for a core, times", round(longer, 2), "",
                                 "kernel scheduler"))
    remedy = _remedy(facts)
    gain = step / max(step - cost, 0.001 * step)
    return Outcome((Finding(
        NAME, "Memory is fetched from the system in every step",
        "error" if cost >= GRAVE * step else "warning", ms(cost), evidence=tuple(evidence),
        counter_evidence=(Evidence("Other kernel time, as of reading and writing files, is in it too"),
                          Evidence("In which stage it is was not measured")),
        remedy=remedy,
        prediction=Prediction("no_allocator", gain, 1.0, gain, at_most=True) if remedy else None,
        advice="Make large buffers once and use them again (out=, copy_), do not give them up in each step; "
               "or start the program with an allocator that keeps memory (jemalloc, tcmalloc)."),))


def _remedy(facts: Facts) -> Remedy | None:
    """The C library of Linux keeps memory when it is told to; another one in its place may not hear of it."""
    told = facts.environment.get(TUNABLES)
    linux = str(facts.machine.get("system", "")).startswith("Linux")
    if not linux or "malloc" in facts.environment.get("LD_PRELOAD", "") or told == KEEP:
        return None
    return Remedy(TUNABLES, told, KEEP)
