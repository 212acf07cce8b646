"""What a run is made of. Times are integer nanoseconds since the epoch on the run's own clock.

The run's clock is the wall clock at the start plus monotonic time since, so a
step of the wall clock moves nothing. A share is a fraction in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

STAGES = ("data", "h2d", "forward", "backward", "optimizer", "other")

# Bits of the metric `step.flags`.
STEP_EVALUATION = 1  # a loader used without backward
STEP_EPOCH_FIRST = 2  # the first step of an epoch: its wait holds the loader's start
STEP_PROFILED = 4  # a torch.profiler window was open
STEP_PARTIAL = 8  # the process ended, or the loop was left, inside it


@dataclass(frozen=True, slots=True)
class Device:
    """A device by its UUID. `index` is the driver's, which may change over a reboot."""

    id: int
    uuid: str
    index: int
    name: str
    kind: str = "cuda"
    memory_total: int | None = None  # bytes
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What it is called where people read it: "GPU 1", of a slice of MIG "GPU 1 slice 7/0"."""
        if "mig_parent" not in self.properties:
            return f"GPU {self.index}"
        instances = [self.properties.get(key) for key in ("gpu_instance", "compute_instance")]
        told = "/".join(str(n) for n in instances) if None not in instances else self.uuid[:12]
        return f"GPU {self.index} slice {told}"


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the target's tree that sent something, or the target itself."""

    id: int
    pid: int
    role: str  # target, rank, python
    command: str = ""
    rank: int | None = None
    started_ns: int | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)  # the probe's hello, the loader's settings


@dataclass(frozen=True, slots=True)
class Track:
    """One metric of one device, process or core: a line on a chart."""

    id: int
    metric: str  # a name in profiler.metrics
    device: int | None = None  # Device.id
    process: int | None = None  # Process.id
    index: int | None = None  # core number, or pid of a process that is not ours
    properties: Mapping[str, Any] = field(default_factory=dict)  # how it was measured


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling, at a time."""

    id: int
    t_ns: int
    kind: str  # e.g. first_step, warmup_end, source_off, field_absent, gap, throttle, mark, target_exit
    severity: str  # info, warning, error
    text: str
    device: int | None = None
    process: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file kept inside the run, compressed: a profiler trace."""

    id: int
    t_ns: int
    kind: str  # kineto
    name: str
    process: int | None
    size: int  # bytes, as stored
    properties: Mapping[str, Any] = field(default_factory=dict)


def mapping(value: Any) -> Mapping[str, Any]:
    """A value that should be an object, such as one of a run's meta; empty where it is none."""
    return value if isinstance(value, Mapping) else {}


class Sink(Protocol):
    """Where sources put what they read: a run file, or a stream to one elsewhere."""

    def set_meta(self, key: str, value: Any) -> None: ...

    def add_device(self, uuid: str, index: int, name: str, *, kind: str = "cuda",
                   memory_total: int | None = None, properties: Mapping[str, Any] | None = None) -> int: ...

    def add_process(self, pid: int, role: str, *, command: str = "", rank: int | None = None,
                    started_ns: int | None = None, properties: Mapping[str, Any] | None = None) -> int: ...

    def update_process(self, process: int, properties: Mapping[str, Any]) -> None: ...

    def end_process(self, process: int) -> None:
        """It is gone: no sample of its tracks comes any more."""

    def track(self, metric: str, *, device: int | None = None, process: int | None = None,
              index: int | None = None, properties: Mapping[str, Any] | None = None) -> int: ...

    def sample(self, track: int, t_ns: int, value: float) -> None: ...

    def event(self, t_ns: int, kind: str, severity: str, text: str, *, device: int | None = None,
              process: int | None = None, data: Mapping[str, Any] | None = None) -> None: ...

    def attach(self, t_ns: int, kind: str, name: str, data: bytes, *, process: int | None = None,
               properties: Mapping[str, Any] | None = None) -> None: ...

    def output(self, t_ns: int, data: bytes) -> None: ...
