"""The largest batch that the device's memory holds, from what one batch size showed."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.readings import Memory


@dataclass(frozen=True)
class Headroom:
    """In samples of one batch. With `at_most` only `high` is known: nothing told what does not grow with it.

    `fixed` bytes stay between steps, `each` are added by a sample, `capacity` is what torch may take.
    """

    low: int
    high: int
    fixed: float
    each: float
    capacity: float
    at_most: bool


def capacity(memory: Memory) -> float | None:
    """Bytes of the device that this process's allocator may take; None where they are not known.

    What neither torch nor the driver holds (contexts, other programs) stays as it is.
    """
    if memory.total is None or memory.elsewhere is None:
        return None
    return max(0.0, memory.total - memory.driver - memory.elsewhere)


def headroom(memory: Memory, batch: float) -> Headroom | None:
    """Of a loop whose largest batch had so many samples. None where peak or capacity are not known.

    Two points of a line: nothing of a batch is left between two steps, all of it at the peak. What lies
    between steps is taken to stay, the rest to grow with the batch. At worst the allocator needs for each
    byte at the peak as many reserved ones as it had, at best no more than that byte.
    """
    room = capacity(memory)
    if room is None or not memory.peak or batch <= 0:
        return None
    if memory.between is None or memory.between >= 0.98 * memory.peak:
        return Headroom(0, int(batch * room / memory.peak), 0.0, memory.peak / batch, room, True)
    each = (memory.peak - memory.between) / batch
    held = max(1.0, (memory.reserved or 0.0) / memory.peak)
    low, high = ((part - memory.between) / each for part in (room / held, room))
    return Headroom(max(0, int(low)), max(0, int(high)), memory.between, each, room, False)
