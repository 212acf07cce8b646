"""The target: the user's command or a workload, started with our terminal or one of its own."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from profiler.errors import TargetError
from profiler.record.wake import readable

RELAY = Path(__file__).with_name("pty_relay.py")
STARTS_WITHIN_S = 20.0
RELAY_ENDS_WITHIN_S = 0.3
CHUNK = 1 << 16


def cannot_start(command: Sequence[str], error: OSError) -> TargetError:
    """What to tell when the system refuses to run the command."""
    name = command[0]
    if error.errno == errno.ENOENT:
        return TargetError(f"command not found: {name}", "Check its spelling and PATH")
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = f"Run it by its interpreter, or chmod +x {name}"
        return TargetError(f"command cannot be executed: {name}", hint)
    if error.errno == errno.ENOEXEC:
        hint = "Run a script by its interpreter, for example python " + name
        return TargetError(f"command is neither a program nor a script with #!: {name}", hint)
    return TargetError(f"command cannot be started: {name}: {error.strerror}")


class Target:
    """Runs with our standard streams, terminal and process group: as without us."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, kept: Sequence[int] = (),
                 stdout: int | None = None) -> None:
        """TargetError when the command cannot be started. `stdout`: a descriptor in the place of ours.

        `kept` are descriptors of ours that it inherits.
        """
        for fd in kept:
            os.set_inheritable(fd, True)
        try:
            # what the shell opened for the command (3<file, <(command)) stays open; what we open does not
            self._popen = subprocess.Popen(list(command), env=dict(env), close_fds=False, stdout=stdout)
        except OSError as error:
            raise cannot_start(command, error) from None
        self.pid = self._popen.pid
        self._pidfd = _pidfd(self.pid)

    def fds(self) -> list[int]:
        """Descriptors that become readable when there is something to do."""
        return [] if self._pidfd is None else [self._pidfd]

    def poll(self) -> int | None:
        """The exit code, below 0 for a signal; None while it runs."""
        return self._popen.poll()

    def read_output(self) -> bytes:
        """What it wrote since the last call: nothing, its output is not ours."""
        return b""

    def type(self, text: str) -> None:
        """Nothing: its input is not ours."""

    @property
    def dropped(self) -> int:
        """Bytes of output lost on the way."""
        return 0

    def close(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


class PtyTarget:
    """Runs on a pseudo-terminal of its own, behind a relay that outlives us: see pty_relay."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *,
                 kept: Sequence[int] = ()) -> None:
        """TargetError when the command cannot be started."""
        status, tell = os.pipe()
        relay = [sys.executable, "-P", "-E", "-S", str(RELAY), str(tell), ",".join(map(str, kept)), "--"]
        try:
            self._relay = subprocess.Popen(
                [*relay, *command], env=dict(env), pass_fds=(tell, *kept), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        finally:
            os.close(tell)
        assert self._relay.stdin is not None and self._relay.stdout is not None
        self._stdin, self._stdout = self._relay.stdin, self._relay.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._status: int | None = status
        self._lines = b""
        self._code: int | None = None
        self.dropped = 0
        first = self._first_message()
        if "error" in first:
            self._relay.wait()
            self.close()
            raise cannot_start(command, OSError(first["error"], os.strerror(first["error"])))
        self.pid: int = first["pid"]

    @property
    def relay_pid(self) -> int:
        return self._relay.pid

    def _first_message(self) -> dict[str, int]:
        assert self._status is not None
        while b"\n" not in self._lines:
            if not readable([self._status], STARTS_WITHIN_S):
                raise TargetError("the command's pseudo-terminal did not start in time")
            data = os.read(self._status, CHUNK)
            if not data:
                raise TargetError("the command's pseudo-terminal could not be made",
                                  "Record from a shell instead: stepscope record -- COMMAND")
            self._lines += data
        line, self._lines = self._lines.split(b"\n", 1)
        os.set_blocking(self._status, False)
        message: dict[str, int] = json.loads(line)
        return message

    def fds(self) -> list[int]:
        """Descriptors that become readable when there is something to do."""
        output = [] if self._stdout.closed else [self._stdout.fileno()]
        return output if self._status is None or self._code is not None else [*output, self._status]

    def poll(self) -> int | None:
        """The exit code, below 0 for a signal; None while it runs."""
        if self._code is None and self._status is not None:
            self._read_status()
        return self._code

    def _read_status(self) -> None:
        assert self._status is not None
        try:
            data = os.read(self._status, CHUNK)
        except BlockingIOError:
            return
        self._lines += data
        for line in self._lines.split(b"\n")[:-1]:
            message = json.loads(line)
            if "exit" in message:
                self._code, self.dropped = message["exit"], message["dropped"]
        if not data and self._code is None:
            # somebody killed the relay: the terminal is gone, the command got a hang-up
            self._code = -signal.SIGHUP

    def read_output(self) -> bytes:
        """What it wrote since the last call."""
        taken = bytearray()
        while not self._stdout.closed and len(taken) < 1 << 20:
            try:
                data = os.read(self._stdout.fileno(), CHUNK)
            except BlockingIOError:
                break
            if not data:
                self._stdout.close()
                break
            taken += data
        return bytes(taken)

    def type(self, text: str) -> None:
        """Type `text` into its terminal."""
        with suppress(OSError):  # it has ended
            self._stdin.write(text.encode("utf-8", "replace"))

    def close(self) -> None:
        """Let go of it. A command that still runs goes on."""
        for stream in (self._stdin, self._stdout):
            with suppress(OSError):
                stream.close()
        if self._status is not None:
            os.close(self._status)
            self._status = None
        if self._code is not None:
            # it ends with its command, unless that has left others on the terminal
            with suppress(subprocess.TimeoutExpired):
                self._relay.wait(RELAY_ENDS_WITHIN_S)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None
