"""Reading fields of GPUs tick by tick: each can fail, stay away and come back on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import Field, Values, Way
from profiler.sources._gpu import RETRY_NS, Gpu
from profiler.sources._library import LOST, UNINITIALIZED, code_of, is_lasting, reason

FIRST_RETRY_NS = 1_000_000_000  # any other, doubled each time
MAX_EVENTS = 20  # of one field of one device


class Reading:
    """One field of one GPU: how it is read now, or why it is not."""

    __slots__ = ("_events", "_told_reason", "absent", "call", "delay_ns", "field", "gpu", "highest",
                 "implausible", "plain", "retry_ns", "tracks", "way")  # fmt: skip

    def __init__(self, gpu: Gpu, field: Field) -> None:
        self.gpu = gpu
        self.field = field
        self.highest = gpu.power_bound if field.metrics == ("gpu.power",) else field.highest
        self.call: Callable[[], Values] | None = None
        self.way: Way | None = None  # the one that has worked; from then on no other is tried
        self.tracks: list[int | None] = [None] * len(field.metrics)
        self.retry_ns = 0
        self.delay_ns = FIRST_RETRY_NS
        self.absent: str | None = None
        self.implausible = False
        self.plain = False  # there is nothing to say about a value, unless it is too large
        self._told_reason: str | None = None
        self._events = 0

    def first(self) -> Values:
        """Bind to the GPU's handle and read, by the first way that works. Raises what the last one raised."""
        failure: Exception | None = None
        for way in (self.way,) if self.way else self.field.ways:
            try:
                call = way.bind(self.gpu.library.nvml, self.gpu.handle)
                values = call()
            except Exception as error:
                if code_of(error) in (UNINITIALIZED, *LOST):
                    raise
                failure = failure or error  # the best way's failure says most
            else:
                self.call, self.way = call, way
                return values
        raise failure or AssertionError(f"no way to read {self.field.title}")

    def store(self, values: Values, sink: Sink, clock: Clock) -> None:
        t_ns = clock.now_ns()
        if (raw := max(v or 0 for v in values)) > self.highest:
            if not self.implausible:
                text = f"{self.field.title}: {raw:.6g} is more than can be ({self.highest:.6g}); left out"
                self._tell(sink, t_ns, "implausible", text, {"raw": raw})
            self.implausible, self.plain = True, False
            return
        self.implausible = False
        if self.absent is not None:
            self._tell(sink, t_ns, "field_back", f"{self.field.title} is read again")
            self.absent = self._told_reason = None
            self.delay_ns = FIRST_RETRY_NS
        properties = self.way.properties if self.way else {}
        for i, value in enumerate(values):
            if value is None:
                continue
            track = self.tracks[i]
            if track is None:  # a metric that never had a value has no track
                metric = self.field.metrics[i]
                track = self.tracks[i] = sink.track(metric, device=self.gpu.id, properties=properties)
            sink.sample(track, t_ns, value)
        self.plain = None not in self.tracks

    def fail(self, error: Exception, sink: Sink, clock: Clock) -> None:
        """No value: say why, once for each reason, and when to ask again."""
        t_ns = clock.now_ns()
        self.call, self.plain = None, False
        self.absent = reason(error)
        self.delay_ns = RETRY_NS if is_lasting(error) else min(self.delay_ns, RETRY_NS)
        self.retry_ns = t_ns + self.delay_ns
        self.delay_ns *= 2
        if self.absent != self._told_reason:
            self._told_reason = self.absent
            self._tell(sink, t_ns, "field_absent", f"{self.field.title} is not read: {self.absent}",
                       {"reason": self.absent, "code": code_of(error)})

    def _tell(self, sink: Sink, t_ns: int, kind: str, text: str,
              data: dict[str, object] | None = None) -> None:
        self._events += 1
        if self._events > MAX_EVENTS:
            return
        last = "; what follows is not told" if self._events == MAX_EVENTS else ""
        severity = "warning" if kind == "implausible" else "info"
        sink.event(t_ns, kind, severity, f"GPU {self.gpu.index}, {text}{last}", device=self.gpu.id,
                   data={**(data or {}), "field": self.field.title, "metrics": list(self.field.metrics)})


class Readings:
    """Some fields of all GPUs, for one source: `read` is one tick."""

    def __init__(self, gpus: Sequence[Gpu], fields: Sequence[Field]) -> None:
        self._of = [(gpu, [Reading(gpu, field) for field in fields]) for gpu in gpus]
        self._bindings = {gpu.id: gpu.binding for gpu in gpus}

    def read(self, sink: Sink, clock: Clock) -> None:
        sample, now_ns = sink.sample, clock.now_ns
        for gpu, readings in self._of:
            if not gpu.ready(sink, clock):
                continue
            if gpu.binding != self._bindings[gpu.id]:
                self._unbind(gpu, readings)
            for reading in readings:
                call = reading.call
                if call is None:
                    if reading.retry_ns > now_ns():
                        continue
                    call = reading.first
                try:
                    values = call()
                except Exception as error:
                    self._recover(reading, readings, error, sink, clock)
                    if gpu.lost is not None:
                        break
                    continue
                # This loop runs some thousand times a second: the common case goes without a call of ours.
                if reading.plain:
                    t_ns, highest = now_ns(), reading.highest
                    for track, value in zip(reading.tracks, values, strict=True):
                        if value is not None and track is not None:
                            if value > highest:
                                reading.store(values, sink, clock)
                                break
                            sample(track, t_ns, value)
                else:
                    reading.store(values, sink, clock)

    def _unbind(self, gpu: Gpu, readings: list[Reading]) -> None:
        self._bindings[gpu.id] = gpu.binding
        for reading in readings:
            reading.call = None

    def _recover(self, reading: Reading, readings: list[Reading], error: Exception, sink: Sink,
                 clock: Clock) -> None:
        """Deal with a failed call: a lost device, a library shut down under us, or this field alone."""
        gpu, code = reading.gpu, code_of(error)
        if code in LOST:
            gpu.lose(reason(error), sink, clock)
            return
        if code == UNINITIALIZED and gpu.library.restart(gpu.epoch) and gpu.ready(sink, clock):
            self._unbind(gpu, readings)
            try:
                reading.store(reading.first(), sink, clock)
                return
            except Exception as second:
                error = second
        reading.fail(error, sink, clock)
