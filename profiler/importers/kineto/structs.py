"""The events of a Kineto file as msgspec decodes them: only the fields that become columns.

A field takes any JSON value, so that one odd value does not spoil the events around it; arguments stay
undecoded until the kind of the event tells which of them matter.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from profiler.trace.model import NONE

T = TypeVar("T")
_EMPTY = Raw(b"{}")
_NOTHING = Raw(b"")


class Slice(Struct, Generic[T], gc=False, tag_field="ph", tag="X"):
    """An event with a duration."""

    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: T = None  # type: ignore[assignment]
    dur: Any = None
    args: Raw = _EMPTY


class Begin(Struct, Generic[T], gc=False, tag_field="ph", tag="B"):
    """The start of an event whose end is written apart."""

    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: T = None  # type: ignore[assignment]
    args: Raw = _EMPTY


class End(Struct, Generic[T], gc=False, tag_field="ph", tag="E"):
    """The end of the event begun last on the thread."""

    pid: Any = None
    tid: Any = None
    ts: T = None  # type: ignore[assignment]


class Instant(Struct, Generic[T], gc=False, tag_field="ph", tag="i"):
    """A moment: what the allocator does."""

    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: T = None  # type: ignore[assignment]
    args: Raw = _EMPTY


class OldInstant(Instant[T], Generic[T], gc=False, tag_field="ph", tag="I"):
    """The same with the letter of older writers."""


class Meta(Struct, gc=False, tag_field="ph", tag="M"):
    """Names of processes and threads."""

    name: Any = None
    pid: Any = None
    tid: Any = None
    args: Raw = _EMPTY


_SKIPPED = tuple(msgspec.defstruct(f"Skipped{letter}", [], gc=False, tag_field="ph", tag=letter)
                 for letter in "stfbenSTpFPCRcNODVvqa")  # flows, asynchronous events, counters, ...


class Loose(Struct, gc=False):
    """An event that fits none of the above, for the count of what was lost."""

    ph: Any = None
    name: Any = None


def _decoder(stamp: Any) -> msgspec.json.Decoder[list[Any]]:
    union: Any = Slice[stamp] | Begin[stamp] | End[stamp] | Instant[stamp] | OldInstant[stamp] | Meta
    for skipped in _SKIPPED:
        union = union | skipped
    return msgspec.json.Decoder(list[union])


EVENTS = _decoder(Any)
EXACT_EVENTS = _decoder(Raw)  # the time stays text: a double does not hold it


class OperatorArgs(Struct, gc=False):
    """Of operators, annotations and other host events."""

    external: Any = field(name="External id", default=NONE)
    sequence: Any = field(name="Sequence number", default=NONE)
    forward_thread: Any = field(name="Fwd thread id", default=NONE)
    types: Raw = field(name="Input type", default=_NOTHING)
    dims: Raw = field(name="Input Dims", default=_NOTHING)
    concrete: Raw = field(name="Concrete Inputs", default=_NOTHING)
    stack: Raw = field(name="Call stack", default=_NOTHING)
    collective: Raw = field(name="Collective name", default=_NOTHING)
    old_external: Any = field(name="external id", default=NONE)
    old_dims: Raw = field(name="Input dims", default=_NOTHING)


class CallArgs(Struct, gc=False):
    """Of runtime and driver calls."""

    external: Any = field(name="External id", default=NONE)
    correlation: Any = field(name="correlation", default=NONE)
    old_external: Any = field(name="external id", default=NONE)


class DeviceArgs(Struct, gc=False):
    """Of kernels, copies and whatever else runs on a device."""

    external: Any = field(name="External id", default=NONE)
    device: Any = None
    stream: Any = None
    correlation: Any = NONE
    registers: Any = field(name="registers per thread", default=NONE)
    shared: Any = field(name="shared memory", default=NONE)
    grid: Any = None
    block: Any = None
    bytes: Any = NONE
    bandwidth: Any = field(name="memory bandwidth (GB/s)", default=NONE)  # so that an infinite one is noticed
    collective: Raw = field(name="Collective name", default=_NOTHING)
    old_external: Any = field(name="external id", default=NONE)


class SyncArgs(Struct, gc=False):
    """Of rows of category cuda_sync."""

    kind: Any = field(name="cuda_sync_kind", default=None)
    wait_stream: Any = field(name="wait_on_stream", default=NONE)
    wait_record: Any = field(name="wait_on_cuda_event_record_corr_id", default=NONE)
    device: Any = None
    stream: Any = None
    correlation: Any = NONE


class MemoryArgs(Struct, gc=False):
    """Of "[memory]" instants."""

    reserved: Any = field(name="Total Reserved", default=NONE)
    allocated: Any = field(name="Total Allocated", default=NONE)
    bytes: Any = field(name="Bytes", default=None)
    address: Any = field(name="Addr", default=NONE)
    device: Any = field(name="Device Id", default=NONE)
    device_type: Any = field(name="Device Type", default=NONE)


class CollectiveArgs(Struct, gc=False):
    """What a communication event says about its collective."""

    name: Any = field(name="Collective name", default=None)
    dtype: Any = None
    group: Any = field(name="Process Group Name", default=None)
    ranks: Any = field(name="Process Group Ranks", default=None)
    group_size: Any = field(name="Group size", default=NONE)
    elements_in: Any = field(name="In msg nelems", default=NONE)
    elements_out: Any = field(name="Out msg nelems", default=NONE)
    sequence: Any = field(name="Seq", default=NONE)


class MetaArgs(Struct, gc=False):
    """Of metadata events."""

    name: Any = None
    labels: Any = None
