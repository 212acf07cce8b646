"""The control channel: commands as JSON lines on standard input, events as JSON lines on standard output."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

MAX_LINE = 1 << 20  # bytes of a command
COMMANDS = ("stop", "kill", "mark", "trace", "input", "flush")


class Control:
    """Reads commands in a thread of its own. `wake` is called, from there, when there is one.

    Commands are objects with "do"; the end of standard input is {"do": "eof"}.
    """

    def __init__(self, wake: Callable[[], None], stdin: int = 0, stdout: int = 1) -> None:
        self._wake = wake
        self._stdin, self._stdout = stdin, stdout
        self._commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._read, name="control", daemon=True).start()

    def take(self) -> dict[str, Any] | None:
        """The next command, None when there is none now."""
        with contextlib.suppress(queue.Empty):
            return self._commands.get_nowait()
        return None

    def tell(self, event: str, **fields: Any) -> None:
        """One line to whoever controls us, if still there."""
        line = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
        with self._lock, contextlib.suppress(OSError):
            data = line.encode()
            while data:
                data = data[os.write(self._stdout, data):]

    def _read(self) -> None:
        pending = b""
        while True:
            try:
                data = os.read(self._stdin, 1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            if len(pending) > MAX_LINE:  # its rest is no command either
                pending = pending[:200]
            for line in lines:
                self._accept(line)
        self._put({"do": "eof"})

    def _accept(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            command = json.loads(line)
            known = isinstance(command, dict) and command.get("do") in COMMANDS
        except (ValueError, RecursionError):
            known = False
        if known:
            if command["do"] in ("stop", "kill"):  # from here: the loop may be busy writing
                self.tell("stopping")
            self._put(command)
        else:
            with contextlib.suppress(OSError):  # nobody may read there
                print(f"stepscope: not a control command: {line[:200]!r}", file=sys.stderr, flush=True)

    def _put(self, command: dict[str, Any]) -> None:
        self._commands.put(command)
        self._wake()
