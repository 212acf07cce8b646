"""Sentences of a trace's diagnosis: the headline, and what a reader must know beside the figures."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.trace.ranks.straggler import Straggler
from profiler.analysis.trace.steady import DEVICE
from profiler.rules.base import plural
from profiler.rules.trace.facts import NOT_ASKED, TraceFacts
from profiler.trace.merge import extent
from profiler.units import format_count, format_ms, ms_decimals

APART = 0.05  # mean and median tell different stories
_WHAT = {
    "input_bound": "the device waits for data", "transfer_bound": "go to copies that nothing hides",
    "sync_bound": "the device idles after the host has waited for it",
    "launch_bound": "the device waits for launches", "host_bound": "the device waits for host work",
    "allocator_bound": "the device waits for memory calls",
    "communication_bound": "go to communication that nothing hides", "compute_bound": "compute",
}
_ON_CPU = {"input_bound": "wait for data", "host_bound": "are Python and other work outside operators"}


def headline(facts: TraceFacts) -> str:
    """One sentence with milliseconds; a share is never alone."""
    if facts.lacks:
        return facts.lacks
    window = facts.shares.window
    decimals = ms_decimals(window)
    whole = f"{format_ms(window, decimals)} {'per step' if facts.steps.per_step else 'of the trace'}"
    word = facts.decision.verdict
    what = _WHAT.get(word, "") if facts.on_device else _ON_CPU.get(word, _WHAT.get(word, ""))
    if not what:
        return f"{whole}; what holds it back cannot be told"
    return f"{format_ms(facts.cost(word), decimals)} of {whole} {what}"


def notes(facts: TraceFacts, every: Sequence[TraceFacts], who: Straggler | None = None) -> tuple[str, ...]:
    """In order of weight; no note twice. `who`: the rank that holds the others up, of several."""
    found = list(_ranks(facts, every))
    if who is not None and who.name is not None:
        found.append(who.reason)
    found += _windows(facts)
    found += facts.trace.notes
    found += facts.steps.notes
    if not facts.lacks:
        found += _figures(facts)
    found += facts.complete.notes
    if facts.what_if and facts.replay.withheld and facts.replay.withheld != facts.lacks:
        found.append(f"No predictions: {facts.replay.withheld}")
    if not facts.what_if and not facts.lacks:
        absent = "neither predictions nor a critical path" if facts.on_device else "no predictions"
        found.append(f"no replay was asked for: there are {absent}")
    found += facts.replay.notes
    return tuple(dict.fromkeys(_sentence(text) for text in found if text))


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return text[:1].upper() + text[1:]


def _ranks(facts: TraceFacts, every: Sequence[TraceFacts]) -> list[str]:
    if len(every) < 2:
        return []
    who = f"rank {facts.trace.rank}" if facts.trace.rank is not None else facts.trace.source
    return [f"Of {plural(len(every), 'process')} {who} is shown, whose own bottleneck costs most".replace(
        "processs", "processes"), *_of_one_job(every)]


def _of_one_job(every: Sequence[TraceFacts]) -> list[str]:
    """What speaks against the processes being the ranks of one job."""
    traces, found = [facts.trace for facts in every], []
    told = [trace.rank for trace in traces if trace.rank is not None]
    for rank in sorted({rank for rank in told if told.count(rank) > 1}):
        found.append(f"{told.count(rank)} of the processes say that they are rank {rank}")
    sizes = sorted({trace.world_size for trace in traces if trace.world_size is not None})
    if len(sizes) > 1:
        found.append(f"The processes are of jobs of {' and '.join(map(str, sizes))} ranks")
    times = [(trace.base_ns + first, trace.base_ns + last) for trace in traces if trace.absolute
             for first, last in [extent(trace)]]
    if len(times) > 1 and max(first for first, _ in times) > min(last for _, last in times):
        found.append("By their clocks not all processes ran at the same time: they are of different runs, or "
                     "their clocks differ")
    return found


def _windows(facts: TraceFacts) -> list[str]:
    """What is of which of several profiler windows of the process."""
    found = []
    if facts.parts:
        count = [int(part.steady.counted.sum()) for part in facts.parts]
        at = facts.parts.index(facts.single)
        said = "predictions, critical path, queue" if facts.what_if else "queue"
        found.append(f"{len(count)} profiler windows of the process are put together "
                     f"({', '.join(map(str, count))} counted steps); {said} and memory over time are of "
                     f"window {at + 1}, {facts.single.trace.source}")
    if facts.left_out:
        found.append(f"{plural(facts.left_out, 'further profiler window')} of the process without such steps "
                     f"{'is' if facts.left_out == 1 else 'are'} left out")
    return found


def _figures(facts: TraceFacts) -> list[str]:
    found = []
    count = int(facts.steady.counted.sum())
    measured = facts.spread
    if measured is not None:
        if count < 10:
            instead = "the range instead of percentiles" if count > 1 else "its spread is not known"
            found.append(f"Only {plural(count, 'counted step')}: {instead}")
        if abs(measured.mean - measured.median) > APART * measured.median:
            found.append(f"Mean and median differ: {format_ms(measured.mean)} and "
                         f"{format_ms(measured.median)} per step")
    if facts.steps.per_step and facts.steady.kind == DEVICE:
        found.append("The host runs ahead of the device: steps are from last device activity to last "
                     "device activity")
    if not len(facts.trace.host):
        found.append("The trace has no host events: what the device waited for cannot be told")
    if facts.trace.resolution_ns >= 1000:
        found.append("The trace has whole microseconds: times are rounded down at both ends of an event")
    if facts.what_if and facts.scale_to_ns is None and facts.replay.withheld != NOT_ASKED:
        found.append("Host costs include the profiler's own")
    devices = len(set(facts.trace.device.device.tolist()))
    if devices > 1:
        found.append(f"Of {format_count(devices)} devices the one with most compute is shown, "
                     f"number {facts.partition.device}")
    return found
