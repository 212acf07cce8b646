"""One recording of an experiment, as a child process that ends with us."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from profiler.errors import TargetError

POLL_S = 0.1
STOP_S = 8.0  # a staged stop of the target takes five
GRACE_S = 15.0  # above its own limit, until a recording counts as stuck


class Child:
    """A recorder whose standard input we hold: when we are gone, it stops and its target ends."""

    def __init__(self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], log: Path) -> None:
        """TargetError when it cannot be started: a folder that is gone, a word that no program can get."""
        self._log = log
        try:
            with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
                # a session of its own: the Ctrl-C of the terminal is for us, who then end it in order
                self._process = subprocess.Popen(
                    argv, cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=out,
                    stderr=err, start_new_session=True)
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            raise TargetError(f"a recording cannot be started{where}: {error.strerror}") from error
        except ValueError as error:  # NUL, or half a character, in an argument or a variable
            raise TargetError(f"a recording cannot be started: {error}") from error

    def wait(self, limit_s: float, tick: Callable[[float], None]) -> None:
        """Until it has ended. `tick(seconds)` is called meanwhile. TargetError when it does not end."""
        begin = time.monotonic()
        while self._process.poll() is None:
            passed = time.monotonic() - begin
            if passed > limit_s + GRACE_S:
                self.end()
                raise TargetError(f"a recording did not end within {limit_s + GRACE_S:.0f} s")
            tick(passed)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_S)

    def end(self) -> None:
        """Stop it, in stages. Returns when it is gone; its target ends with it."""
        if self._process.poll() is None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(b'{"do": "stop"}\n')
                self._process.stdin.flush()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self.close()

    def close(self) -> None:
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def complaint(self) -> str:
        """The last thing it said about an error; empty when it said nothing."""
        for line in reversed(_text(self._log).splitlines()):
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("event") == "error":
                    return str(event.get("message", ""))
        lines = [line for line in _text(self._log.with_suffix(".err")).splitlines() if line.strip()]
        return lines[-1].removeprefix("stepscope: ") if lines else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
