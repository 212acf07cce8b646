"""Between a pseudo-terminal and the recorder: keeps the target unharmed when the recorder dies.

Run by path with -P -E -S, in a session of its own; imports only the standard library.

    pty_relay.py STATUS_FD KEPT_FDS -- COMMAND ...

It owns the pseudo-terminal and starts COMMAND as the foreground job on it, like
a shell does. What the command writes goes to standard output (the recorder's
pipe), what comes on standard input is typed into the terminal. The status pipe
carries JSON lines: {"pid": n}, {"error": errno} or, last, {"exit": code,
"dropped": bytes}, code below 0 for a signal. When the recorder is gone or slow,
the output is read all the same and dropped: the command never blocks and never
sees a hang-up.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios

KEPT = 4 << 20  # bytes held back for a recorder that is slow
CHUNK = 1 << 16
ROWS, COLUMNS = 40, 120

# Nothing but the end of the command ends the relay: it stands between that and a hang-up.
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGTTOU,
           signal.SIGTSTP)


class Relay:
    """The loop between the terminal's master side and the recorder's pipes."""

    def __init__(self, master: int, child: int, status: int) -> None:
        self.master = master
        self.child = child
        self.status = status
        self.typed: int | None = 0
        self.out: int | None = 1
        self.held = bytearray()
        self.input = bytearray()
        self.dropped = 0
        self.code: int | None = None
        self.open = True
        self.told = False
        for fd in (master, 0, 1):
            os.set_blocking(fd, False)

    def run(self) -> None:
        """Until the command has ended and nobody holds the terminal any more."""
        child_ended = _pidfd(self.child)
        while self.open or self.code is None:
            self._turn(child_ended)
            if self.code is None:
                self.code = _reap(self.child)
            if self.code is not None and not self.told:
                self._finish()

    def _turn(self, child_ended: int | None) -> None:
        reads = [fd for fd in (self.master if self.open else None, self.typed) if fd is not None]
        if child_ended is not None and self.code is None:
            reads.append(child_ended)
        waiting = ((self.out, self.held), (self.master, self.input))
        writes = [fd for fd, data in waiting if data and fd is not None]
        watched = child_ended is not None or self.code is not None
        ready, writable, _ = select.select(reads, writes, [], None if watched else 0.05)
        if self.master in ready:
            self.read_output()
        if self.typed is not None and self.typed in ready:
            self._read_input()
        if self.out is not None and self.out in writable:
            self._write_output()
        if self.master in writable:
            self._type()

    def read_output(self) -> bool:
        """Take what the command has written; False when there is nothing now, or never again."""
        try:
            data = os.read(self.master, CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # EIO: the last one that held the terminal has closed it
            data = b""
        if not data:
            self.open = False
            self.input.clear()
            return False
        if self.out is None:
            return True
        self.held += data
        if len(self.held) > KEPT:
            surplus = len(self.held) - KEPT
            del self.held[:surplus]
            self.dropped += surplus
        return True

    def _write_output(self) -> None:
        try:
            written = os.write(1, self.held)
        except BlockingIOError:
            return
        except OSError:  # the recorder is gone
            self.out = None
            self.held.clear()
            return
        del self.held[:written]

    def _read_input(self) -> None:
        try:
            data = os.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # no end of file for the command: its terminal stays, with nobody typing
            self.typed = None
        elif len(self.input) < CHUNK:
            self.input += data

    def _type(self) -> None:
        try:
            written = os.write(self.master, self.input)
        except BlockingIOError:
            return
        except OSError:
            self.input.clear()
            return
        del self.input[:written]

    def _finish(self) -> None:
        """The command has ended: its last words first, then how it ended."""
        self.told = True
        while self.open and len(self.held) < KEPT and self.read_output():
            pass
        while self.held and self.out is not None:
            if not select.select([], [self.out], [], 2.0)[1]:
                break
            self._write_output()
        tell(self.status, {"exit": self.code, "dropped": self.dropped})
        # without the end of file a recorder would wait for those that keep the terminal
        with contextlib.suppress(OSError):
            os.close(self.status)
        if not self.open:
            self.out = None


def tell(status: int, message: dict) -> None:
    """One line to the recorder, if it is still there."""
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(message).encode() + b"\n")


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def _reap(pid: int) -> int | None:
    done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def open_terminal() -> tuple[int, int]:
    """(master, slave) of a new pseudo-terminal, ours to control. Bytes pass it unchanged."""
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST  # no carriage returns that the command did not write
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    return master, slave


def start(slave: int, command: list[str]) -> tuple[int, int]:
    """(pid, errno): the command as foreground job of the terminal; errno when it cannot be run."""
    failed, fail = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            os.tcsetpgrp(slave, os.getpid())
            for number in (*IGNORED, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.execvp(command[0], command)
        except OSError as error:
            os.write(fail, str(error.errno or errno.EIO).encode())
        finally:
            os._exit(127)
    os.close(fail)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    text = os.read(failed, 16)
    os.close(failed)
    return pid, int(text) if text else 0


def main(argv: list[str]) -> int:
    status, kept, command = int(argv[0]), argv[1], argv[3:]
    os.set_inheritable(status, False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    master, slave = open_terminal()
    pid, error = start(slave, command)
    os.close(slave)
    for fd in filter(None, kept.split(",")):
        os.close(int(fd))
    if error:
        tell(status, {"error": error})
        return 127
    tell(status, {"pid": pid})
    Relay(master, pid, status).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
