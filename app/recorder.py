"""The recorder of this window: `stepscope record --control` as a child process."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from app.spec import LaunchSpec
from profiler.run.alive import process_start

# A stop asks, then insists, then ends the recorder itself: done within five seconds.
KILL_AFTER_MS = 2500
END_AFTER_MS = 4300
STDERR_LINES = 40


class State(Enum):
    IDLE = "idle"
    STARTING = "starting"
    RECORDING = "recording"
    STOPPING = "stopping"


class Recorder(QObject):
    """One recording at a time. Every start ends in `finished`, or in `failed` where no run came of it."""

    started = Signal(object)  # Path of the run file
    finished = Signal(object, object)  # Path, the target's end: {"code", "signal", "reason"} or {}
    failed = Signal(str)  # no run came of it, or the recorder died; ends with its stderr
    told = Signal(str, str)  # trouble with the recording while it runs, or its end; and its tone: err, warn
    state_changed = Signal(object)  # State

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = State.IDLE
        self.run_path: Path | None = None
        self.spec: LaunchSpec | None = None
        self._process: QProcess | None = None
        self._pending = b""
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._end: Mapping[str, Any] | None = None
        self._error = ""
        self._pid: int | None = None  # of the target
        self._timers = [self._timer(KILL_AFTER_MS, self.kill), self._timer(END_AFTER_MS, self._end_process)]

    def _timer(self, after_ms: int, do: Any) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(after_ms)
        timer.timeout.connect(do)
        return timer

    @property
    def active(self) -> bool:
        return self.state is not State.IDLE

    def start(self, spec: LaunchSpec) -> None:
        """Start a recording. RuntimeError while one runs."""
        if self.active:
            raise RuntimeError("a recording runs already")
        argv = spec.argv()
        self.spec, self.run_path, self._end, self._error = spec, None, None, ""
        self._pending, self._pid = b"", None
        self._stderr.clear()
        process = QProcess(self)
        process.setProgram(argv[0])
        process.setArguments(argv[1:])
        environment = QProcessEnvironment.systemEnvironment()
        for name, value in spec.environment.items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        if spec.cwd is not None:
            process.setWorkingDirectory(str(spec.cwd))
        process.readyReadStandardOutput.connect(self._on_stdout)
        process.readyReadStandardError.connect(self._on_stderr)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        self._process = process
        self._set_state(State.STARTING)
        process.start()

    def stop(self) -> None:
        """End target and recording: asked at once, insisted on after a while."""
        if self.state in (State.IDLE, State.STOPPING):
            return
        self._set_state(State.STOPPING)
        self._send({"do": "stop"})
        for timer in self._timers:
            timer.start()

    def kill(self) -> None:
        """End the target without asking it; the run is kept."""
        if not self.active:
            return
        if self.state is not State.STOPPING:
            self.stop()
        self._send({"do": "kill"})

    def mark(self, text: str) -> None:
        self._send({"do": "mark", "text": text})

    def trace(self, steps: int = 8) -> None:
        """Ask for a profiler window over the next `steps` steps."""
        self._send({"do": "trace", "steps": steps})

    def send_input(self, text: str) -> None:
        """Type `text` into the target's terminal."""
        self._send({"do": "input", "text": text})

    def flush(self) -> None:
        self._send({"do": "flush"})

    def shutdown(self) -> None:
        """End whatever runs, waiting for it: for the end of the application."""
        process = self._process
        if process is None:
            return
        self.stop()
        if not process.waitForFinished(KILL_AFTER_MS):
            self._send({"do": "kill"})
            if not process.waitForFinished(END_AFTER_MS - KILL_AFTER_MS):
                process.kill()
                process.waitForFinished(1000)

    def stderr_tail(self, lines: int = 8) -> str:
        return "\n".join(list(self._stderr)[-lines:])

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._process is not None and self._process.state() == QProcess.ProcessState.Running:
            self._process.write(json.dumps(message).encode() + b"\n")
            self._process.waitForBytesWritten(20)

    def _set_state(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            self.state_changed.emit(state)

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _on_stdout(self) -> None:
        if self._process is None:
            return
        data = self._pending + bytes(self._process.readAllStandardOutput().data())
        *lines, self._pending = data.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self._on_message(message)

    def _on_message(self, message: Mapping[str, Any]) -> None:
        event = message.get("event")
        if event == "started":
            self.run_path = Path(str(message["run"]))
            self._pid = message.get("pid")
            if self.state is State.STARTING:
                self._set_state(State.RECORDING)
            self.started.emit(self.run_path)
        elif event == "finished":
            end = message.get("exit")
            self._end = end if isinstance(end, dict) else {"code": end}
        elif event == "error":
            self._error = str(message.get("message") or message.get("text") or "the recorder failed")
            if self.run_path is not None:  # the command goes on, and so does the recorder
                self.told.emit(self._error, "err")
        elif event == "resumed":
            self._error = ""
            self.told.emit(f"the recording goes on. {message.get('message', '')}", "warn")

    def _goes_on(self) -> str:
        """What is left of a recorder that died: a command of the user's; a workload of ours ends with it."""
        if self.spec is None or not self.spec.command or self._pid is None:
            return ""
        return f". The command goes on as process {self._pid}" if process_start(self._pid) is not None else ""

    def _on_stderr(self) -> None:
        if self._process is None:
            return
        text = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
        self._stderr.extend(line for line in text.splitlines() if line.strip())

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._error = f"the recorder cannot be started: {self._process.errorString()}"
            self._on_finished(-1)

    def _on_finished(self, code: int, status: QProcess.ExitStatus = QProcess.ExitStatus.NormalExit) -> None:
        process = self._process
        if process is None:
            return
        self._on_stdout()  # the rest of what it wrote
        self._on_stderr()
        self._process = None
        for timer in self._timers:
            timer.stop()
        process.deleteLater()
        stopped = self.state is State.STOPPING
        self._set_state(State.IDLE)
        if self._end is not None or (stopped and self.run_path is not None):
            self.finished.emit(self.run_path, dict(self._end or {}))
            return
        killed = status is QProcess.ExitStatus.CrashExit
        how = f"was killed by signal {code}" if killed else f"ended with status {code}"
        reason = (self._error or f"the recorder {how}") + self._goes_on()
        tail = self.stderr_tail()
        self.failed.emit(f"{reason}\n{tail}" if tail and tail not in reason else reason)
