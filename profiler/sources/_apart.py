"""What the drivers tell of this machine's GPUs, asked in a process of its own: it may crash or hang."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import Any

from profiler.paths import own_command

PATIENCE_S = 15.0  # a driver that has slept takes seconds to wake its cards
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
_HINT = "Check that nvidia-smi (amd-smi for AMD) works, and the kernel log (dmesg)"


def describe_apart() -> dict[str, dict[str, Any]]:
    """By vendor what its `describe` tells, "nvml" always. Never raises."""
    try:
        done = subprocess.run(own_command("gpu-read", "--describe"), capture_output=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, start_new_session=True)
    except subprocess.TimeoutExpired:
        return _absent("hangs", f"The GPU driver has not answered within {PATIENCE_S:.0f} s", _HINT)
    except OSError as error:
        return _absent("not_asked", f"The process that asks the driver cannot be started: {error}", "")
    if done.returncode < 0:
        return _absent("crashed", f"When asked for its GPUs, {death(done.returncode, done.stderr)[1]}", _HINT)
    try:
        told: dict[str, dict[str, Any]] = json.loads(done.stdout)
        return {"nvml": told["nvml"], **told}
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no answer"])[-1][:200]
        return _absent("unknown", f"The GPU driver could not be asked: {last}", _HINT)


def death(status: int, said: bytes) -> tuple[str, str]:
    """How a process that reads GPUs ended: in a word (SIGSEGV), and as the reason of a gap.

    `status`: below 0 by that signal. `said`: the end of its stderr, where it tells where it crashed.
    """
    try:
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
    except ValueError:
        how = f"signal {-status}"
    if how not in CRASHES:
        return how, f"the process that reads the GPUs ended ({how})"
    call = re.search(rb"\n  File [^\n]* in ((?:nvml|amdsmi|rsmi)\w*)\n", said)
    where = f" in {call[1].decode()}" if call else ""
    return how, f"the GPU driver's library crashed ({how}){where}"


def _absent(cause: str, reason: str, hint: str) -> dict[str, dict[str, Any]]:
    return {"nvml": {"state": "absent", "cause": cause, "reason": reason, "hint": hint, "devices": []}}
