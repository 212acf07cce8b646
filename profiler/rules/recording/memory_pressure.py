"""The device's memory: whether it runs out, and for how large a batch it would do."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.headroom import Headroom, headroom
from profiler.analysis.readings import Memory
from profiler.rules.base import Evidence, Finding, Outcome, plural

NAME = "memory_pressure"
TITLE = "Memory of the device"
NEARLY = 0.9  # of what torch may take, needed at the peak
ROOM = 1.25  # times the batch, from which room is worth telling


def check(facts: Facts) -> Outcome:
    """Lacks readings of memory; ruled out on a CPU, and where there is neither trouble nor room."""
    if facts.lacks or facts.summary is None:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.on_device:
        return Outcome(ruled_out="the loop runs on the CPU")
    memory = facts.readings.memory
    if memory is None:
        return Outcome(lacks="neither torch's allocator nor the device's memory was read")
    batch = batch_of(facts)
    room = headroom(memory, batch or 1)
    full = memory.peak / room.capacity if room and memory.peak and room.capacity else None
    if memory.ooms or memory.ran_out:
        times = plural(memory.ooms or 1, "time")
        return _finding(facts, f"Memory ran out {times}", "error", room, batch, full)
    if memory.retries or (full is not None and full >= NEARLY):
        return _finding(facts, "Memory is nearly full", "warning", room, batch, full)
    if room is None and facts.device is not None and facts.device.properties.get("unified_memory"):
        return Outcome(lacks="the GPU's memory is the host's, and how much of it torch may take is not told")
    if room is None:
        return Outcome(lacks="how much of the memory others hold is not known" if memory.peak else
                       "the peak of torch's allocator was not read")
    if not batch:
        return Outcome(lacks="the batch size was not seen")
    if room.high < ROOM * batch:
        return Outcome(ruled_out=f"it fits, with no room for {ROOM:g} times the batch")
    text = f"at most {room.high}" if room.at_most else f"about {room.low}"
    if not room.at_most and room.low < ROOM * batch:
        return Outcome(ruled_out=f"room for a batch of {text}")
    return _finding(facts, f"Memory has room for a batch of {text}, now {batch}", "info", room, batch, full)


def batch_of(facts: Facts) -> int | None:
    """Samples of the largest batch: the loader's batch size, else what a step takes; None where unknown."""
    size = facts.loader.get("batch_size")
    if isinstance(size, int) and size > 0:
        return size
    summary = facts.summary
    return round(summary.batch) if summary and summary.batch and summary.unit == "samples" else None


def _finding(facts: Facts, title: str, severity: str, room: Headroom | None, batch: int | None,
             full: float | None) -> Outcome:
    memory = facts.readings.memory
    assert memory is not None
    pressed = severity != "info"
    evidence = _evidence(memory, full)
    against = []
    if room and batch and not pressed:
        evidence += [Evidence("Batch", batch, "samples"),
                     Evidence("Each sample adds at the peak", room.each, "B", "probe")]
        if room.at_most:
            against.append(Evidence("What does not grow with the batch is not known: this is an upper bound"))
        else:
            evidence.append(Evidence("Largest batch, if no reserved memory were lost", room.high, "samples",
                                     "predicted"))
            against.append(Evidence("Taken to grow with the batch: all that is not kept between two steps",
                                    source="predicted"))
        if facts.readings.shapes and facts.readings.shapes.vary:
            against.append(Evidence("Batches differ in shape: the peak is of the largest so far"))
    advice = ("Use a smaller batch, activation checkpointing or a smaller type; PYTORCH_CUDA_ALLOC_CONF="
              "expandable_segments:True helps where pieces do not fit." if pressed else
              "A larger batch does more work per launch; it changes the training too (learning rate). "
              "A sweep over the batch size tells what it gives.")
    return Outcome((Finding(NAME, title, severity, evidence=tuple(evidence), counter_evidence=tuple(against),
                            advice=advice, site=memory.ran_out.get("site") or None),))


def _evidence(memory: Memory, full: float | None) -> list[Evidence]:
    rows = (("Peak allocated by torch", memory.peak, "probe"),
            ("Allocated between two steps, least", memory.between, "probe"),
            ("Reserved by torch, most", memory.reserved, "probe"),
            ("Used by contexts and others", memory.elsewhere, "NVML, probe"),
            ("Used on the device, most", memory.used, "NVML"), ("Memory of the device", memory.total, "NVML"))
    found = [Evidence(text, value, "B", source) for text, value, source in rows if value is not None]
    if full is not None:
        found.append(Evidence("Needed at the peak, of what torch may take", full, "share", "NVML, probe"))
    if memory.retries or memory.ooms:
        text = "Cached memory given back and asked for again"
        found.append(Evidence(text, memory.retries, "count", "torch"))
        found.append(Evidence("Out-of-memory errors", memory.ooms, "count", "torch"))
    for key, text in (("requested", "Asked for when it last ran out"), ("free", "Free at that time")):
        if isinstance(size := memory.ran_out.get(key), int):
            found.append(Evidence(text, size, "B", "torch"))
    if memory.split:
        text = "Reserved in pieces that fit no other request, mean"
        found.append(Evidence(text, memory.split, "B", "torch"))
    return found
