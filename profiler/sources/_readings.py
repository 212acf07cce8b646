"""Reading fields of GPUs tick by tick: each can fail, stay away and come back on its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import Field, Implausible, Values, Way
from profiler.sources._gpu import RETRY_NS, Gpu
from profiler.sources._library import LOST, UNINITIALIZED, Missing, code_of, is_lasting, reason

FIRST_RETRY_NS = 1_000_000_000  # any other, doubled each time
MAX_EVENTS = 20  # of one field of one device
NO_ANSWER = "the driver does not answer this call"
IMPLAUSIBLE = "what the driver answers cannot be"


class Reading:
    """One field of one GPU: how it is read now, or why it is not."""

    __slots__ = ("_binding", "_events", "_told", "call", "delay_ns", "field", "gpu", "highest", "lowest",
                 "plain", "retry_ns", "tracks", "way")  # fmt: skip

    def __init__(self, gpu: Gpu, field: Field) -> None:
        self.gpu = gpu
        self.field = field
        self.highest = (gpu.power_bound,) if field.metrics == ("gpu.power",) else field.bounds
        self.lowest = field.lowest
        self.call: Callable[[], Values] | None = None
        self.way: Way | None = None  # the one that has worked; from then on no other is tried
        self.tracks: list[int | None] = [None] * len(field.metrics)
        self.retry_ns = 0
        self.delay_ns = FIRST_RETRY_NS
        self.plain = False  # there is nothing to say about a value, unless it cannot be
        self._told: str | None = None  # what is wrong, as it was told
        self._events = 0
        self._binding = gpu.binding

    def read(self, sink: Sink, clock: Clock) -> None:
        """One tick: ask, and store the values or why there are none."""
        gpu = self.gpu
        if (gpu.lost is not None or gpu.epoch != gpu.library.epoch) and not gpu.ready(sink, clock):
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
        t_ns, lowest, sample = clock.now_ns(), self.lowest, sink.sample
        for track, value, highest in zip(self.tracks, values, self.highest):
            if value is not None and track is not None:
                if lowest <= value <= highest:
                    sample(track, t_ns, value)
                else:
                    self.doubt(value, self._why(value, highest), sink, t_ns)

    def stuck(self, sink: Sink, clock: Clock) -> None:
        """The call has not returned for long. The value that ends this tells that it is back."""
        self.plain = False
        if self._told != NO_ANSWER:
            self._told = NO_ANSWER
            self._tell(sink, clock.now_ns(), "field_absent", f"{self.field.title} is not read: {NO_ANSWER}",
                       {"reason": NO_ANSWER, "code": None})

    def _recover(self, error: Exception, sink: Sink, clock: Clock) -> None:
        """Deal with a failed call: a lost device, a library shut down under us, or this field alone."""
        gpu, code = self.gpu, code_of(error)
        if isinstance(error, Implausible):
            self.doubt(error.raw, str(error), sink, clock.now_ns())
            return
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
            except Implausible:  # it answers, and may make sense at the next tick
                self.call, self.way = call, way
                raise
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
        """Keep the values that can be; tell when that begins or ends to be all of them."""
        t_ns, fits = clock.now_ns(), True
        self.delay_ns = FIRST_RETRY_NS
        for value, highest in zip(values, self.highest, strict=True):
            if value is not None and not self.lowest <= value <= highest:
                self.doubt(value, self._why(value, highest), sink, t_ns)
                fits = False
        if fits and self._told is not None:
            self._told = None
            self._tell(sink, t_ns, "field_back", f"{self.field.title} is read again")
        properties = self.way.properties if self.way else {}
        for i, value in enumerate(values):
            if value is None or not self.lowest <= value <= self.highest[i]:
                continue
            track = self.tracks[i]
            if track is None:  # a metric that never had a value has no track
                metric = self.field.metrics[i]
                track = self.tracks[i] = sink.track(metric, device=self.gpu.id, properties=properties)
            sink.sample(track, t_ns, value)
        self.plain = fits and None not in self.tracks

    def _why(self, value: float, highest: float) -> str:
        if math.isnan(value):
            return "no number"
        bound, word = (highest, "more") if value > highest else (self.lowest, "less")
        return f"{value:.6g} is {word} than can be ({bound:.6g})"

    def doubt(self, raw: float, why: str, sink: Sink, t_ns: int) -> None:
        """The driver's answer cannot be. Said when it begins."""
        self.plain = False
        if self._told != IMPLAUSIBLE:
            self._told = IMPLAUSIBLE
            self._tell(sink, t_ns, "implausible", f"{self.field.title}: {why}; left out",
                       {"raw": float(raw) if math.isfinite(raw) else str(raw)})

    def fail(self, error: Exception, sink: Sink, clock: Clock) -> None:
        """No value: say why, once for each reason, and when to ask again."""
        t_ns = clock.now_ns()
        self.call, self.plain = None, False
        why = reason(error)
        self.delay_ns = RETRY_NS if is_lasting(error) else min(self.delay_ns, RETRY_NS)
        self.retry_ns = t_ns + self.delay_ns
        self.delay_ns *= 2
        if why != self._told:
            self._told = why
            self._tell(sink, t_ns, "field_absent", f"{self.field.title} is not read: {why}",
                       {"reason": why, "code": code_of(error)})

    def _tell(self, sink: Sink, t_ns: int, kind: str, text: str,
              data: dict[str, object] | None = None) -> None:
        self._events += 1
        if self._events > MAX_EVENTS:
            return
        last = "; what follows is not told" if self._events == MAX_EVENTS else ""
        severity = "warning" if kind == "implausible" else "info"
        sink.event(t_ns, kind, severity, f"{self.gpu.title}, {text}{last}", device=self.gpu.id,
                   data={**(data or {}), "field": self.field.title, "metrics": list(self.field.metrics)})


def readings(gpus: Sequence[Gpu], fields: Sequence[Field]) -> list[Reading]:
    """Every field of every GPU, in order of GPUs."""
    return [Reading(gpu, field) for gpu in gpus for field in fields]
