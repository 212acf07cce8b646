"""Why a profiler got nothing from the device, from what the command printed."""

from __future__ import annotations

import re

_ERROR = re.compile(r"CUPTI_ERROR_(\w+)")
# Kineto prints this advice with every error, whatever it was.
_ADVICE = re.compile(r"If you see CUPTI_ERROR|refer to https?://")
_FAILED = re.compile(r"CUPTI initialization failed", re.I)
_WHAT = {
    "INSUFFICIENT_PRIVILEGES": "the driver lets only administrators profile",
    "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES": "the virtual machine's driver does not allow profiling",
    "VIRTUALIZED_DEVICE_NOT_SUPPORTED": "the virtual device cannot be profiled",
    "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": "another profiler uses CUPTI (nsys, DCGM or kin)",
    "HARDWARE_BUSY": "another program holds the device's profiling hardware",
}


def cause(printed: str) -> str:
    """The first error of CUPTI in the output of a command, as a clause; "" when there is none."""
    for line in printed.splitlines():
        found = None if _ADVICE.search(line) else _ERROR.search(line)
        if found:
            return f"{_WHAT.get(found[1], 'CUPTI failed')} ({found[0]})"
    return "CUPTI could not be initialised" if _FAILED.search(printed) else ""
