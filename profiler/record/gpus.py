"""The GPUs are read by a process of their own: started here, listened to, started again after a crash.

A driver library that crashes or hangs takes that process along, and neither the recording
nor the target. One process for all vendors: machines with two of them are rare, and each
process costs memory.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from profiler.model import Sink
from profiler.paths import own_command
from profiler.record.clock import Clock
from profiler.record.ticks import Cadence
from profiler.record.wake import readable
from profiler.sources._apart import HINT, Death
from profiler.sources._checked import BadRecord, count, mapping, text
from profiler.sources._wire import Taker

AGAIN_S = (1.0, 10.0, 60.0)  # from the death of a reader to the next one
HEALTHY_S = 600.0  # of life, after which it begins again at the first
QUIET_S = 5.0  # it says something twice a second
KILLED_S = 30.0  # without a word
DEATHS_TOLD = 20
LEFT_S = 0.2  # for a killed one to be gone; one that is stuck in the kernel is left behind
MOST_SOURCES = 16
CRASHES_OF_A_CALL = 2  # after which the reader goes on without it
# Without these nothing can be read at all.
NEEDED = ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "amdsmi", "rsmi")


class RemoteTicks:
    """What the reader tells of the ticks of one of its sources, over all its lives."""

    def __init__(self, name: str, interval_ns: int) -> None:
        self.name = name
        self.cadence = Cadence(interval_ns, 0)
        self.news = 0  # ticks that were told last
        self.off: str | None = None


class GpuReader:
    """Reads the GPUs into the sink in a thread of ours and a process of its own.

    `devices` maps UUIDs to ids in the run. `ticks` tells of each source. `cpu_ns` and
    `peak_rss` (bytes) are what the process has used, `cpu_share` that of a core in its last second.
    """

    name = "GPU"

    def __init__(self, sink: Sink, clock: Clock, rate_hz: float, target: int | None) -> None:
        self.devices: dict[str, int] = {}
        self.ticks: dict[str, RemoteTicks] = {}
        self.cpu_ns = self.peak_rss = 0
        self.cpu_share = 0.0
        self._sink = sink
        self._clock = clock
        arguments = ["--clock", f"{clock.start_monotonic_ns},{clock.start_wall_ns}", "--rate", repr(rate_hz)]
        self._command = own_command("gpu-read", *arguments, *(["--target", str(target)] if target else []))
        self._crashes: Counter[str] = Counter()  # by the driver's call
        self._done = False  # it has said that there is nothing to read
        self._killed_for = ""
        self._taker = Taker(sink, self.devices, self._hear)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._heard: float | None = None  # the last word, monotonic s; None until the first
        self._told_quiet = False
        self._dead_ns: int | None = None  # since when nothing is read
        self._deaths = 0
        self._used = (0, 0)  # monotonic and CPU ns at its last word
        self._thread = threading.Thread(target=self._run, name="gpus", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end. Returns at once."""
        with self._lock:
            self._stopping.set()
            self._close_stdin()

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by itself within that time; killed if not."""
        self._thread.join(max(0.0, timeout_s))
        if not self._thread.is_alive():
            return True
        self._kill("")
        self._thread.join(LEFT_S)
        if self._heard is None:
            self._absent("not_asked", "The recording ended before the GPUs were found", "Record for longer")
            return True
        return False

    def _run(self) -> None:
        try:
            self._lives()
        except Exception as error:
            self._kill("")
            text = f"the GPUs are not read: {type(error).__name__}: {error}"
            self._absent("unknown", text, HINT)
            self._event("source_off", text)

    def _lives(self) -> None:
        turn = 0
        while not self._stopping.is_set():
            begun = time.monotonic()
            self._done, self._killed_for = False, ""
            try:
                death = Death(*self._live())
            except OSError as error:  # no process, no descriptor is free now
                death = Death(1, b"")
                death.reason = f"the process that reads the GPUs cannot be started: {error}"
            if self._killed_for:
                death.reason = f"the process that reads the GPUs was ended: {self._killed_for}"
            if self._stopping.is_set() or (self._done and not self.devices):
                return
            turn = 0 if time.monotonic() - begun > HEALTHY_S else turn
            delay = AGAIN_S[min(turn, len(AGAIN_S) - 1)]
            turn += 1
            self._dead_ns = self._dead_ns or time.monotonic_ns()
            if not self._done:  # else its driver is not there now, which it has said itself
                self._tell_death(death, delay)
            self._stopping.wait(delay)

    def _live(self) -> tuple[int, bytes]:
        """One life of the reader. How it ended (below 0: by that signal), and the end of its stderr."""
        with self._lock:
            if self._stopping.is_set():
                return 0, b""
            command = [*self._command, *(f"--without={call}" for call in self._left_out())]
            # No descriptor of ours and no terminal: it holds nothing of the target's, and hears no keys.
            self._process = process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                start_new_session=True)
        assert process.stdout is not None and process.stderr is not None
        self._taker.begin()
        self._used = (0, 0)
        started, said = time.monotonic(), _Tail()
        streams: dict[int, Callable[[], bytes]] = {
            process.stdout.fileno(): _reader(process.stdout, self._take),
            process.stderr.fileno(): _reader(process.stderr, said.take)}
        while streams:
            for fd in readable(list(streams), 1.0):
                if not streams[fd]():
                    del streams[fd]
            self._watch(started)
        with self._lock:
            self._close_stdin()
        status = process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()
        return status, said.kept

    def _close_stdin(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def _take(self, data: bytes) -> None:
        self._heard = time.monotonic()
        try:
            self._taker.feed(data)
        except BadRecord:
            self._kill("what it says makes no sense")

    def _watch(self, started: float) -> None:
        quiet = time.monotonic() - max(self._heard or 0.0, started)
        if quiet > QUIET_S and not self._told_quiet:
            text = "the process that reads the GPUs does not answer; their data has a gap"
            self._event("source_stuck", text)
        self._told_quiet = quiet > QUIET_S
        if quiet > KILLED_S:
            self._kill(f"it has not answered for {KILLED_S:.0f} s")

    def _kill(self, why: str) -> None:
        self._killed_for = why
        if self._process is not None:
            self._process.kill()

    # What it says of itself.

    def _hear(self, message: list[Any]) -> None:
        if message[0] == "done":
            self._done, self.cpu_share = True, 0.0
            return
        name, now, cpu, rss, told = message
        if name != "ticks":
            raise BadRecord
        now, cpu = count(now), count(cpu)
        self.cpu_ns += max(0, cpu - self._used[1])
        if now > self._used[0] and not self._done:
            self.cpu_share = max(0, cpu - self._used[1]) / (now - self._used[0]) if self._used[0] else 0.0
        self._used = now, cpu
        self.peak_rss = max(self.peak_rss, count(rss))
        for source, ticks in mapping(told).items():
            self._count(text(source, 50), ticks)
        if self._dead_ns is not None and self._taker.has_devices:
            self._back()

    def _count(self, name: str, ticks: list[Any]) -> None:
        interval, done, missed, late_sum, late_max = map(count, ticks[:5])
        known = self.ticks.get(name)
        if known is None:
            if len(self.ticks) >= MOST_SOURCES or not interval:
                raise BadRecord
            known = self.ticks[name] = RemoteTicks(name, interval)
        known.off = None if ticks[5] is None else text(ticks[5])
        cadence = known.cadence
        if done and cadence.begun_ns is None:
            cadence.begun_ns = time.monotonic_ns() - done * interval
        known.news = done
        cadence.ticks += done
        cadence.missed += missed
        cadence.lateness_sum_ns += late_sum
        cadence.lateness_max_ns = max(cadence.lateness_max_ns, late_max)
        cadence.recent_max_ns = max(cadence.recent_max_ns, late_max)

    # Death, and life again.

    def _tell_death(self, death: Death, delay: float) -> None:
        self.cpu_share = 0.0
        then = ""
        if death.call is not None and not death.call.startswith(NEEDED):
            self._crashes[death.call] += 1
            if death.call in self._left_out():
                then = f", from now on without {death.call}"
        if not self.devices:
            self._absent("crashed", death.reason, HINT)
        self._deaths += 1
        if self._deaths > DEATHS_TOLD:
            return
        last = "; what follows of this is not told" if self._deaths == DEATHS_TOLD else ""
        text = f"{death.reason}: the GPUs are not read; tried again in {delay:.0f} s{then}{last}"
        self._event("gap", text, reason=death.reason, signal=death.how, call=death.call)

    def _left_out(self) -> list[str]:
        return [call for call, crashes in self._crashes.items() if crashes >= CRASHES_OF_A_CALL]

    def _back(self) -> None:
        """It reads again. The ticks between are missed ones, those of its beginning aside."""
        assert self._dead_ns is not None
        dead = time.monotonic_ns() - self._dead_ns
        self._dead_ns = None
        for one in self.ticks.values():
            if one.off is None:
                one.cadence.missed += max(0, dead // one.cadence.interval_ns - one.news)
        if self._deaths <= DEATHS_TOLD:
            self._event("source_back", "the GPUs are read again", "info")

    def _absent(self, cause: str, reason: str, hint: str) -> None:
        self._sink.set_meta("gpu", {"state": "absent", "cause": cause, "hint": hint,
                                    "reason": reason[:1].upper() + reason[1:]})

    def _event(self, kind: str, text: str, severity: str = "warning", **data: object) -> None:
        self._sink.event(self._clock.now_ns(), kind, severity, text, data={"source": self.name, **data})


class _Tail:
    """The end of what a stream says."""

    MOST = 4000

    def __init__(self) -> None:
        self.kept = b""

    def take(self, data: bytes) -> None:
        self.kept = (self.kept + data)[-self.MOST:]


def _reader(stream: IO[bytes], take: Callable[[bytes], None]) -> Callable[[], bytes]:
    def read() -> bytes:
        data = stream.read(1 << 16)
        if data:
            take(data)
        return data

    return read
