"""What was read now and then beside the steps: memory of the device, copies, shapes, compilation, users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from profiler.analysis.series import BoolArray, FloatArray, IntArray
from profiler.analysis.steady import FEWEST
from profiler.analysis.steps import Steps
from profiler.model import Device, mapping

if TYPE_CHECKING:
    from profiler.run.reader import Run

Extent = tuple[int, int] | None
LAST_NS = 2_000_000_000  # after its last step a process that ran out of memory still tells so
FOREIGN = "outside this namespace"  # of a process in NVML's list whose pid nobody here has


@dataclass(frozen=True)
class Memory:
    """Bytes on one device. None where nothing was read.

    `between` is the least that torch had allocated at a step's end, when activations are gone; `peak`
    the most since the process began; `reserved` the most that its allocator held, `split` the mean of what
    lies in pieces that fit no other request. `retries` (the allocator had to give its cache back and ask
    again) and `ooms` are sums over the loop. `used`, `total` and `driver` are the device's, of everybody;
    `elsewhere` is what is used and not reserved by this run, by medians: contexts, other processes.
    """

    between: float | None
    peak: float | None
    reserved: float | None
    split: float | None
    retries: int
    ooms: int
    used: float | None
    total: int | None
    driver: float
    elsewhere: float | None
    ran_out: Mapping[str, Any] = field(default_factory=dict)  # requested, total, free: bytes; site


@dataclass(frozen=True)
class Copies:
    """Copies to the device that the loop asked for: per step, and shares of their bytes in [0, 1]."""

    count: float
    bytes: float
    pinned: float | None
    blocking: float | None


@dataclass(frozen=True)
class Compiled:
    """Graphs that torch.compile made during the counted steps, and how long that took, ns."""

    graphs: int
    ns: float
    before: int  # graphs that there were by then


@dataclass(frozen=True)
class Shapes:
    """Shapes of the training batches' first tensor, over the process's life.

    `new` steps among the steady ones brought a shape that was not there before; `excess_ns` is what such a
    step takes longer than the others, None where there are not three of each.
    """

    batches: int
    changes: int
    distinct: int
    common: float  # share of the batches that have the most frequent shape
    smallest: tuple[int, ...]
    largest: tuple[int, ...]
    new: int
    excess_ns: float | None

    @property
    def vary(self) -> bool:
        """Whether more differs than the last batch of an epoch."""
        return self.distinct > 2 and self.common <= 0.8


@dataclass(frozen=True)
class User:
    """A process in NVML's list of those on the device. `whose`: target, other, or FOREIGN.

    `bytes` is the most that it held; `busy` the mean share of the time, in [0, 1], in which a kernel of it
    ran. None where the driver does not tell.
    """

    pid: int
    whose: str
    name: str
    bytes: float | None
    busy: float | None = None


@dataclass(frozen=True)
class Readings:
    """`numerics`: settings of precision, types of the weights, autocast, as the probe tells them."""

    memory: Memory | None = None
    driver_calls: float | None = None  # memory asked of the driver or given back, times a steady step
    copies: Copies | None = None
    compiled: Compiled | None = None
    shapes: Shapes | None = None
    users: tuple[User, ...] = ()
    numerics: Mapping[str, Any] = field(default_factory=dict)


def readings(run: Run, process: int | None, properties: Mapping[str, Any], device: Device | None,
             steps: Steps, mask: BoolArray) -> Readings:
    """Of one process. `mask` bool[n]: which of its steps are steady."""
    counted = steps.select(mask)
    extent = (int(counted.t0_ns[0]), int(counted.t1_ns[-1])) if len(counted) else None
    if process is None or extent is None:
        return Readings()
    return Readings(
        memory=_memory(run, process, device, steps),
        driver_calls=_driver_calls(run, process, device, steps, extent),
        copies=_copies(run, process, properties, steps, extent),
        compiled=_compiled(run, process, extent), shapes=_shapes(run, process, properties, counted),
        users=users(run, device, extent), numerics=mapping(properties.get("numerics")))


def _values(run: Run, metric: str, extent: Extent = None, **of: int | None) -> tuple[IntArray, FloatArray]:
    """Of the first track that has values; empty without one."""
    for track in run.find(metric, **of):
        t, values = run.values(track.id, *(extent or ()))
        if len(values):
            return t, values
    return np.empty(0, np.int64), np.empty(0)


def _memory(run: Run, process: int, device: Device | None, steps: Steps) -> Memory | None:
    """Over the whole loop: a peak before the steady steps is one too, and the last word comes at its end."""
    extent = (int(steps.t0_ns[0]), int(steps.t1_ns[-1]) + LAST_NS)
    number = device.id if device else None

    def of_torch(metric: str) -> FloatArray:
        return _values(run, f"torch.{metric}", extent, process=process, device=number)[1]

    def of_device(metric: str) -> FloatArray:
        return _values(run, f"gpu.{metric}", extent, device=number)[1] if number is not None else np.empty(0)

    allocated, peak = of_torch("mem_allocated"), of_torch("mem_peak")
    reserved, split = of_torch("mem_reserved"), of_torch("mem_split")
    used, driver = of_device("mem_used"), of_device("mem_reserved")
    if not len(allocated) and not len(used):
        return None
    held = [run.values(track.id, *extent)[1] for track in run.find("torch.mem_reserved", device=number)]
    ours = sum(float(np.median(values)) for values in held if len(values)) if number is not None else 0.0
    told = [e.data for e in run.events() if e.kind == "out_of_memory" and e.process == process]
    return Memory(
        ran_out=told[-1] if told else {},
        between=_of(np.min, allocated), peak=_of(np.max, peak), reserved=_of(np.max, reserved),
        split=_of(np.mean, split), retries=int(_grown(of_torch("alloc_retries"))),
        ooms=int(_grown(of_torch("ooms"))), used=_of(np.max, used),
        total=device.memory_total if device else None, driver=_of(np.max, driver) or 0.0,
        elsewhere=max(0.0, float(np.median(used)) - ours) if len(used) and ours else None)


def _driver_calls(run: Run, process: int, device: Device | None, steps: Steps,
                  extent: tuple[int, int]) -> float | None:
    number = device.id if device else None
    t, calls = _values(run, "torch.driver_calls", extent, process=process, device=number)
    made = int(((steps.t1_ns > t[0]) & (steps.t1_ns <= t[-1])).sum()) if len(t) else 0
    return _grown(calls) / made if made else None


def _copies(run: Run, process: int, properties: Mapping[str, Any], steps: Steps,
            extent: tuple[int, int]) -> Copies | None:
    t, count = _values(run, "torch.copies", extent, process=process)
    size = _values(run, "torch.copied", extent, process=process)[1]
    if len(t) < 2 or len(size) != len(t):
        return None
    made = int(((steps.t1_ns > t[0]) & (steps.t1_ns <= t[-1])).sum())
    if not made:
        return None
    told = mapping(properties.get("copies"))
    return Copies(_grown(count) / made, _grown(size) / made, _share(told.get("pinned")),
                  _share(told.get("blocking")))


def _compiled(run: Run, process: int, extent: tuple[int, int]) -> Compiled | None:
    every = _values(run, "torch.graphs", process=process)
    if not len(every[1]):
        return None
    spent = _values(run, "torch.compile_time", process=process)
    return Compiled(int(_during(*every, extent)), _during(*spent, extent),
                    int(_until(*every, extent[0])))


def _until(t: IntArray, values: FloatArray, at: int) -> float:
    earlier = values[t <= at]
    return float(earlier[-1]) if len(earlier) else 0.0


def _during(t: IntArray, sums: FloatArray, extent: tuple[int, int]) -> float:
    """How much a sum that is told when it changes grew in [t0, t1]."""
    inside = sums[(t > extent[0]) & (t <= extent[1])]
    return _grown(np.concatenate(([_until(t, sums, extent[0])], inside)))


def _shapes(run: Run, process: int, properties: Mapping[str, Any], counted: Steps) -> Shapes | None:
    told = mapping(properties.get("shapes"))
    known = [told.get(name) for name in ("batches", "changes", "distinct", "common_batches")]
    if not all(isinstance(value, int) for value in known) or not known[0]:
        return None
    batches, changes, distinct, common = (int(value or 0) for value in known)
    t = _values(run, "batch.shapes", process=process)[0]
    first = np.searchsorted(t, counted.t0_ns, side="left") < np.searchsorted(t, counted.t1_ns, side="left")
    enough = min(first.sum(), (~first).sum()) >= FEWEST
    wall = counted.wall.astype(np.float64)
    return Shapes(
        batches, changes, distinct, common / batches,
        _sizes(told.get("smallest")), _sizes(told.get("largest")), int(first.sum()),
        float(wall[first].mean() - wall[~first].mean()) if enough else None)


def users(run: Run, device: Device | None, extent: Extent = None) -> tuple[User, ...]:
    """Who was on a device, over the run or in [t0, t1]: those that computed most first, then by memory."""
    found: dict[int, User] = {}
    for metric in ("gpu.process_mem", "gpu.process_util"):
        for track in run.find(metric, device=device.id) if device else ():
            values = run.values(track.id, *(extent or ()))[1]
            if not len(values):
                continue
            pid, told = track.index or 0, track.properties
            user = found.get(pid, User(pid, str(told.get("whose", "")), str(told.get("name", "")), None))
            found[pid] = replace(user, bytes=float(values.max())) if metric == "gpu.process_mem" else \
                replace(user, busy=float(values.mean()))
    return tuple(sorted(found.values(), key=lambda user: (-(user.busy or 0.0), -(user.bytes or 0.0))))


def _grown(sums: FloatArray) -> float:
    """How much a sum grew; where it was set back it went on from there."""
    return float(np.maximum(np.diff(sums), 0).sum())


def _of(what: Any, values: FloatArray) -> float | None:
    return float(what(values)) if len(values) else None


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple(n for n in value if isinstance(n, int)) if isinstance(value, list) else ()
