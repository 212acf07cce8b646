"""What the drivers tell of this machine's GPUs, asked in a process of its own: it may crash or hang."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import Any

from profiler.paths import own_command
from profiler.sources._library import absent

PATIENCE_S = 15.0  # a driver that has slept takes seconds to wake its cards
HINT = "Check that nvidia-smi (amd-smi for AMD) works, and the kernel log (dmesg)"
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")


def describe_apart() -> dict[str, dict[str, Any]]:
    """By vendor what its `describe` tells, "nvml" always. Never raises."""
    try:
        done = subprocess.run(own_command("gpu-read", "--describe"), capture_output=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, start_new_session=True)
    except subprocess.TimeoutExpired:
        return _absent("hangs", f"The GPU driver has not answered within {PATIENCE_S:.0f} s", HINT)
    except OSError as error:
        return _absent("not_asked", f"The process that asks the driver cannot be started: {error}", "")
    if done.returncode < 0:
        reason = Death(done.returncode, done.stderr).reason
        return _absent("crashed", f"When asked for its GPUs, {reason}", HINT)
    try:
        told: dict[str, dict[str, Any]] = json.loads(done.stdout)
        return {"nvml": told["nvml"], **told}
    except (ValueError, KeyError, TypeError):
        last = _last_line(done.stderr) or "no answer"
        return _absent("unknown", f"The GPU driver could not be asked: {last}", HINT)


class Death:
    """How a process that reads GPUs ended, from its status and the end of its stderr.

    `how` is a word (SIGSEGV), `call` the driver's call in which it crashed (None: not known),
    `reason` says it all.
    """

    def __init__(self, status: int, said: bytes) -> None:
        self.call: str | None = None
        try:
            self.how = signal.Signals(-status).name if status < 0 else f"status {status}"
        except ValueError:
            self.how = f"signal {-status}"
        if self.how in CRASHES:
            found = re.search(rb"\n  File [^\n]* in ((?:nvml|amdsmi|rsmi)\w*)\n", said)
            self.call = found[1].decode() if found else None
            where = f" in {self.call}" if self.call else ""
            self.reason = f"the GPU driver's library crashed ({self.how}){where}"
        else:
            last = f": {line}" if status > 0 and (line := _last_line(said)) else ""
            self.reason = f"the process that reads the GPUs ended ({self.how}{last})"


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def _absent(cause: str, reason: str, hint: str) -> dict[str, dict[str, Any]]:
    return {"nvml": {**absent(cause, reason, hint), "devices": []}}
