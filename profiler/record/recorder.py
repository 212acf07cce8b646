"""The recorder's loop: commits, watches target and control, and ends everything in order."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiler.errors import TakenRunError
from profiler.paths import working_dir
from profiler.record import metadata, session
from profiler.record.clock import Clock
from profiler.record.clock_watch import ClockWatch
from profiler.record.control import Control
from profiler.record.gpus import GpuReader
from profiler.record.life import Life
from profiler.record.options import TRACE_STEPS, Options, Outcome
from profiler.record.output import Output
from profiler.record.overhead import Overhead
from profiler.record.private import remove_folder
from profiler.record.ticks import SourceThread
from profiler.record.trouble import Trouble
from profiler.record.wake import ENDING, Wake
from profiler.run.files import free_name, remove_run
from profiler.run.writer import RunWriter

TURN_NS = 200_000_000  # between commits: they are a good part of what the recorder costs
SECOND_NS = 1_000_000_000
ANCHOR_NS = 60_000_000_000
SOURCES_END_S = 1.0  # a source that hangs is left behind after that
SPOOL_END_S = 10.0  # the last traces are read and compressed


def record(options: Options, notify: Callable[[str], None]) -> Outcome:
    """Record until the target has ended, or a limit, a signal or the control channel ends it.

    `notify` gets lines for the user. TargetError, RunError when it cannot begin; then no file is left.
    """
    clock = Clock()
    spool = session.make_spool()
    try:
        options, writer = _create(options, clock)
        recorder = Recorder(options, clock, writer, spool, notify)
        try:
            return recorder.run()
        except BaseException:
            if not recorder.begun:
                writer.close()
                remove_run(options.output)
            raise
    finally:
        remove_folder(spool)


def _create(options: Options, clock: Clock) -> tuple[Options, RunWriter]:
    """The run file, and the options with the name that it got."""
    name = options.output
    while True:
        try:
            return options, RunWriter.create(options.output, session.first_meta(options, clock),
                                             overwrite=options.overwrite, now_ns=clock.now_ns)
        except TakenRunError:
            if not options.renumber:
                raise
            options = replace(options, output=free_name(name))


class Recorder:
    """One recording, from the main thread."""

    def __init__(self, options: Options, clock: Clock, writer: RunWriter, spool: Path,
                 notify: Callable[[str], None]) -> None:
        self.begun = False
        self._options = options
        self._clock = clock
        self._clock_watch = ClockWatch(clock)
        self._writer = writer
        self._output = Output(writer)
        self._spool = spool
        self._life = Life(options, writer, clock, spool)
        self._threads: list[SourceThread] = []
        self._wake = Wake()
        self._control = Control(self._wake.wake) if options.control else None
        self._trouble = Trouble(writer, notify, self._control)

    def run(self) -> Outcome:
        try:
            self._begin()
            self._loop()
            return self._end()
        except Exception as error:
            if not self.begun:
                raise
            return self._go_on_without(error)
        finally:
            self._wake.close()
            self._life.close()

    def _begin(self) -> None:
        self._life.begin()
        self.begun = True
        self._begun_ns = time.monotonic_ns()
        rate = self._options.rate_hz
        self._gpus = GpuReader(self._writer, self._clock, rate, self._life.tree.pid)
        sources, self._probes = session.make_sources(self._life.tree, self._spool, self._gpus.devices)
        self._threads = [SourceThread(source, self._writer, self._clock, rate) for source in sources]
        self._overhead = Overhead(self._threads, self._gpus)
        for part in self._parts():
            part.start()
        threading.Thread(target=self._read_git, daemon=True).start()
        self._writer.commit()
        if self._control is not None:
            target = self._life.target
            self._control.tell("started", run=str(self._options.output), pid=target.pid if target else None)
            self._control.start()

    def _parts(self) -> list[SourceThread | GpuReader]:
        return [self._gpus, *self._threads]

    def _read_git(self) -> None:
        here = working_dir()
        if here is not None and (found := metadata.git(here)) is not None:
            self._writer.set_meta("git", found)

    # The loop.

    def _loop(self) -> None:
        turn = second = anchor = time.monotonic_ns()
        while not self._life.over:
            self._wake.wait(turn, self._life.fds())
            self._take_output()
            self._take_signals()
            self._take_commands()
            self._life.check()
            self._check_limits()
            now = time.monotonic_ns()
            if now >= turn:
                turn = _next(turn, TURN_NS, now)
                self._commit()
            if now >= second:
                second = _next(second, SECOND_NS, now)
                self._each_second()
            if now >= anchor:
                anchor = _next(anchor, ANCHOR_NS, now)
                self._clock.add_anchor()
                self._writer.set_meta("anchors", self._clock.anchors)

    def _take_output(self) -> None:
        if self._life.target is not None:
            self._output.add(self._life.target.read_output())

    def _commit(self) -> None:
        self._output.flush(self._clock.now_ns())
        self._writer.commit()
        self._trouble.look()

    def _each_second(self) -> None:
        self._overhead.sample(self._writer, self._clock)
        self._clock_watch.look(self._writer)
        for thread in self._threads:
            thread.watch()
        if self._life.absent is not None and self._life.code is None:
            self._life.absent.tick(self._writer, self._clock)
        self._life.check_watched()
        self._trouble.warn(self._probes.urgent)

    def _take_signals(self) -> None:
        for number in self._wake.take_signals():
            if signal.Signals(number).name in ENDING:
                self._life.stop("terminated")
            elif self._life.target is None:  # else the keys of the terminal are the target's
                self._life.stop("stopped")

    def _check_limits(self) -> None:
        if self._life.reason is not None:
            return
        seconds, steps = self._options.duration_s, self._options.steps
        if seconds is not None and time.monotonic_ns() - self._begun_ns >= seconds * 1e9:
            self._life.stop("duration")
        elif steps is not None and self._probes.steps_seen >= steps:
            self._life.stop("steps")

    # The control channel.

    def _take_commands(self) -> None:
        while self._control is not None and (command := self._control.take()) is not None:
            self._obey(command)

    def _obey(self, command: dict[str, Any]) -> None:
        do = command["do"]
        if do == "stop":
            self._life.stop("stopped")
        elif do == "kill":
            self._life.stop("killed", kill=True)
        elif do == "mark":
            text = str(command.get("text") or "mark")[:500]
            self._writer.event(self._clock.now_ns(), "mark", "info", text)
        elif do == "trace":
            self._ask_for_trace(command.get("steps"))
        elif do == "input" and self._life.target is not None:
            self._life.target.type(str(command.get("text", "")))
        elif do == "flush":
            self._commit()
        elif do == "eof" and self._life.reason is None:
            # who controlled us is gone: a workload ends with it, a user's command goes on without us
            if self._life.target is not None and not self._life.bound:
                self._life.reason = "detached"
            else:
                self._life.stop("stopped")

    def _ask_for_trace(self, steps: Any) -> None:
        wanted = steps if isinstance(steps, int) and 0 < steps <= 1000 else TRACE_STEPS
        new = self._spool / ".trace_now.new"
        with suppress(OSError):
            new.write_text(str(wanted), encoding="ascii")
            new.replace(self._spool / "trace_now")

    # The end.

    def _end(self) -> Outcome:
        duration = (time.monotonic_ns() - self._begun_ns) / 1e9
        self._take_output()
        self._join_sources()
        if self._life.absent is not None:
            self._life.absent.end(self._writer, self._clock)
        self._overhead.sample(self._writer, self._clock)
        reason, code = self._life.reason or "ended", self._life.code
        crashed = reason == "detached" or (reason == "ended" and bool(code))
        outcome = Outcome(self._options.output, "partial" if crashed else "finished", reason, code,
                          self._probes.steps_seen, duration, self._life.tree.pid,
                          told=tuple(self._probes.failures(self._clock.now_ns())))
        self._clock.add_anchor()
        self._writer.set_meta("anchors", self._clock.anchors)
        self._writer.set_meta("overhead", self._overhead.summary())
        self._writer.set_meta("exit", outcome.exit_meta())
        self._commit()
        self._writer.finish(outcome.state, self._clock.now_ns())
        outcome = outcome.with_failure(self._writer.failed or self._writer.incomplete)
        if self._control is not None:
            self._control.tell("finished", run=str(outcome.output), state=outcome.state,
                               exit=outcome.exit_meta())
        return outcome

    def _go_on_without(self, error: Exception) -> Outcome:
        """The recorder itself has failed: the run keeps what it had, the command its life and its status."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        self._trouble.stopped(text)
        with suppress(Exception):
            self._writer.commit()
        self._writer.close()
        for part in self._parts():
            part.stop()
        if self._life.target is None:
            self._life.stop("ended")
        while not self._life.over:
            time.sleep(TURN_NS / 1e9)
            self._take_signals()
            self._take_commands()
            self._life.check()
            if self._life.target is not None:
                self._life.target.read_output()
        duration = (time.monotonic_ns() - self._clock.start_monotonic_ns) / 1e9
        outcome = Outcome(self._options.output, "partial", self._life.reason or "ended", self._life.code,
                          0, duration, self._life.tree.pid, text)
        if self._control is not None:
            self._control.tell("finished", run=str(outcome.output), state=outcome.state,
                               exit=outcome.exit_meta())
        return outcome

    def _join_sources(self) -> None:
        """A source's last read is in its thread; one that hangs is left behind."""
        for part in self._parts():
            part.stop()
        begin = time.monotonic()
        for part in self._parts():
            limit = SPOOL_END_S if part.name == self._probes.name else SOURCES_END_S
            if not part.join(begin + limit - time.monotonic()):
                self._writer.event(self._clock.now_ns(), "source_stuck", "warning",
                                   f"the {part.name} source did not end in time", data={"source": part.name})


def _next(due_ns: int, interval_ns: int, now_ns: int) -> int:
    """The next time of a cadence, what was missed left out."""
    return due_ns + interval_ns * (1 + (now_ns - due_ns) // interval_ns)
