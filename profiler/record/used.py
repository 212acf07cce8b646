"""What this process has used of the machine."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """The most memory that was resident at once, in bytes.

    Linux's own figure counts, from before the program was started, also what its parent had: a small
    recorder that a large notebook starts would be as large as that.
    """
    with suppress(OSError, ValueError, IndexError):
        for line in _STATUS.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    told = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return told if sys.platform == "darwin" else told * 1024
