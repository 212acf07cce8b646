"""The columns of a trace.

Times are integer nanoseconds since the trace's own zero (`Trace.base_ns` since the
epoch), whatever form the file had. A text is stored once, in `Trace.names`; columns
hold its number, and -1 for none. Rows of a table are sorted by start, then by
falling end, so that what encloses comes before what it encloses. Only events with
usable times are rows; what was left out is counted in `Losses`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Small: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]

NONE = -1  # in a column of numbers: not given


class Kind(IntEnum):
    """What an event is, from its category in any spelling."""

    OPERATOR = 0      # cpu_op, Operator
    ANNOTATION = 1    # user_annotation on the host; in old spelling an Operator that is one
    PYTHON = 2        # python_function
    RUNTIME = 3       # cuda_runtime, hip*, Runtime
    DRIVER = 4        # cuda_driver
    OVERHEAD = 5      # of the profiler itself
    HOST_OTHER = 6    # any other host event with a duration
    KERNEL = 16
    MEMCPY = 17
    MEMSET = 18
    DEVICE_OTHER = 19  # on a device, neither of the three above, and work


@dataclass(frozen=True, slots=True)
class Host:
    """Events of host threads, n rows."""

    start: Ints
    end: Ints
    name: Codes
    kind: Small          # Kind
    thread: Codes        # index into Trace.threads
    correlation: Ints    # of runtime and driver calls
    external: Ints       # "External id": the operator's own; for calls that of the operator around them
    sequence: Ints       # autograd sequence number: joins a forward operator and its backward node
    forward_thread: Ints  # "Fwd thread id" of a backward node; 0 and NONE elsewhere
    dims: Codes          # "Input Dims" as its JSON text
    types: Codes         # "Input type" as its JSON text
    stack: Codes         # "Call stack", frames separated by ;
    concrete: Codes      # "Concrete Inputs" as its JSON text: strides, paddings, flags of an operator

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Device:
    """Activities of devices, n rows."""

    start: Ints
    end: Ints
    name: Codes
    kind: Small          # Kind: KERNEL, MEMCPY, MEMSET, DEVICE_OTHER
    device: Codes        # device id as the file has it
    stream: Ints
    correlation: Ints
    external: Ints
    bytes: Ints          # of copies and memsets
    grid: Ints           # blocks of the grid
    block: Codes         # threads of a block
    registers: Codes     # a thread
    shared: Codes        # bytes of shared memory a block

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Syncs:
    """Rows of category cuda_sync, n rows: which stream or event a synchronising call waited for."""

    start: Ints
    end: Ints
    name: Codes          # "cuda_sync_kind": Stream Sync, Event Sync, Stream Wait Event, Context Sync, ...
    device: Codes
    stream: Ints
    correlation: Ints    # of the runtime call
    wait_stream: Ints    # "wait_on_stream": the stream whose event is waited for
    wait_record: Ints    # "wait_on_cuda_event_record_corr_id": correlation of the cudaEventRecord call

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Memory:
    """Allocator events ("[memory]"), n rows sorted by time."""

    time: Ints
    thread: Codes
    device_type: Codes   # 0 CPU, 1 CUDA, ... as c10 numbers them
    device: Codes
    bytes: Ints          # negative: freed
    address: Ints        # as int64, the pattern of the unsigned address
    allocated: Ints      # in all, after the event
    reserved: Ints

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True)
class Collectives:
    """What is written on communication events, n rows; one of `host` and `device` is NONE."""

    host: Codes          # row of Trace.host (record_param_comms and kin)
    device: Codes        # row of Trace.device (the kernel)
    name: Codes          # "Collective name"
    dtype: Codes
    group: Codes         # "Process Group Name"
    ranks: Codes         # "Process Group Ranks" as text
    group_size: Ints
    elements_in: Ints
    elements_out: Ints
    sequence: Ints       # "Seq", in newer files

    def __len__(self) -> int:
        return len(self.host)


@dataclass(frozen=True, slots=True)
class Thread:
    """A host thread. A pid or tid that is no number is kept as text in `label`, with a number of its own."""

    pid: int
    tid: int
    name: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Losses:
    """What of the file is not in the tables, and why."""

    events: int = 0            # events read, of every phase, usable or not
    invalid: int = 0           # with a time or duration that is missing, negative, not finite or absurd
    unfinished: int = 0        # begun and never ended
    repaired: int = 0          # texts or numbers that were no valid JSON and could be mended
    unreadable: int = 0        # pieces that could not be
    missing_values: int = 0    # inf, nan and kin, taken as missing
    truncated_at: int | None = None  # byte of the decompressed text up to which it was readable
    examples: tuple[str, ...] = ()   # "name: reason" of the first invalid events

    @property
    def any(self) -> bool:
        return bool(self.invalid or self.unfinished or self.repaired or self.unreadable
                    or self.missing_values or self.truncated_at is not None)


@dataclass(frozen=True)
class Trace:
    """One process (rank): of one file, or of several profiler windows."""

    source: str                     # file name as the user knows it, with the member's inside an archive
    names: tuple[str, ...]          # every text once
    threads: tuple[Thread, ...]
    host: Host
    device: Device
    syncs: Syncs
    memory: Memory
    collectives: Collectives
    base_ns: int = 0                # what was subtracted from every time, ns; since the epoch if `absolute`
    absolute: bool = True
    resolution_ns: int = 1          # 1000 when the file has whole microseconds
    rank: int | None = None
    world_size: int | None = None
    properties: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # deviceProperties by id
    metadata: Mapping[str, Any] = field(default_factory=dict)  # top-level values of the file, small ones
    losses: Losses = Losses()
    notes: tuple[str, ...] = ()     # sentences for the user: what was lost, guessed, repaired
    cuts: tuple[int, ...] = ()      # where each further profiler window begins, ns; none in a single one
