"""NVLinks of a GPU: which are up, and what is at their other ends."""

from __future__ import annotations

import re
from typing import Any

from profiler.sources._fields import Implausible
from profiler.sources._library import INVALID_ARGUMENT, NOT_SUPPORTED, Missing, code_of

MAX_LINKS = 36
BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


def links_up(nvml: Any, handle: Any) -> list[int]:
    """Numbers of the NVLinks that are up. Missing when the device has none."""
    found, known = [], 0
    for link in range(MAX_LINKS):
        try:
            up = nvml.nvmlDeviceGetNvLinkState(handle, link)
        except Exception as error:
            if code_of(error) in (INVALID_ARGUMENT, NOT_SUPPORTED):  # this number is none of the device's
                break
            raise
        if up not in (0, 1):
            raise Implausible(up, f"link {link} is neither up nor down ({up})")
        known += 1
        if up == 1:
            found.append(link)
    if not known:
        raise Missing("this GPU has no NVLinks")
    return found


def peers(nvml: Any, handle: Any) -> dict[str, int] | None:
    """Bus id of what is at the other end (a GPU, a switch) -> NVLinks to it that are up; None without any."""
    found: dict[str, int] = {}
    try:
        for link in links_up(nvml, handle):
            told = nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId
            name = told.decode("ascii", "replace") if isinstance(told, bytes) else str(told)
            if not BUS_ID.fullmatch(name):
                continue
            found[name] = found.get(name, 0) + 1
    except Exception:
        return None
    return found or None
