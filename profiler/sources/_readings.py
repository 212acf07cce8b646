"""Reading fields of GPUs tick by tick: each can fail, stay away and come back on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import Field, Values, Way
from profiler.sources._gpu import RETRY_NS, Gpu
from profiler.sources._library import LOST, UNINITIALIZED, Missing, code_of, is_lasting, reason

FIRST_RETRY_NS = 1_000_000_000  # any other, doubled each time
MAX_EVENTS = 20  # of one field of one device
NO_ANSWER = "the driver does not answer this call"


class Reading:
    """One field of one GPU: how it is read now, or why it is not."""

    __slots__ = ("_binding", "_events", "_told_reason", "absent", "call", "delay_ns", "field", "gpu",
                 "highest", "implausible", "plain", "retry_ns", "tracks", "way")  # fmt: skip

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
        self._binding = gpu.binding

    def read(self, sink: Sink, clock: Clock) -> None:
        """One tick: ask, and store the values or why there are none."""
        gpu = self.gpu
        if not gpu.ready(sink, clock):
            return
        if gpu.binding != self._binding:
            self.call, self._binding = None, gpu.binding
        if self.call is None and self.retry_ns > clock.now_ns():
            return
        try:
            values = self.call() if self.call is not None else self.first()
        except Exception as error:
            self._recover(error, sink, clock)
            return
        # This runs some thousand times a second: the common case goes without a call of ours.
        if not self.plain:
            self.store(values, sink, clock)
            return
        t_ns, highest, sample = clock.now_ns(), self.highest, sink.sample
        for track, value in zip(self.tracks, values, strict=True):
            if value is not None and track is not None:
                if value > highest:
                    self.store(values, sink, clock)
                    return
                sample(track, t_ns, value)

    def stuck(self, sink: Sink, clock: Clock) -> None:
        """The call has not returned for long. The value that ends this tells that it is back."""
        self.plain, self.absent = False, NO_ANSWER
        if self._told_reason != NO_ANSWER:
            self._told_reason = NO_ANSWER
            self._tell(sink, clock.now_ns(), "field_absent", f"{self.field.title} is not read: {NO_ANSWER}",
                       {"reason": NO_ANSWER, "code": None})

    def _recover(self, error: Exception, sink: Sink, clock: Clock) -> None:
        """Deal with a failed call: a lost device, a library shut down under us, or this field alone."""
        gpu, code = self.gpu, code_of(error)
        if code in LOST:
            gpu.lose(reason(error), sink, clock)
            return
        if code == UNINITIALIZED and gpu.library.restart(gpu.epoch) and gpu.ready(sink, clock):
            self.call, self._binding = None, gpu.binding
            try:
                self.store(self.first(), sink, clock)
                return
            except Exception as second:
                error = second
        self.fail(error, sink, clock)

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
                # The best way's failure says most, unless it is only not made for this device.
                failure = error if failure is None or isinstance(failure, Missing) else failure
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


def readings(gpus: Sequence[Gpu], fields: Sequence[Field]) -> list[Reading]:
    """Every field of every GPU, in order of GPUs."""
    return [Reading(gpu, field) for gpu in gpus for field in fields]
