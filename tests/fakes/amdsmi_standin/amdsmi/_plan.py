"""What the stand-in answers by its plan, its exceptions and its enumerations.

A plan (see tests/fakes/amdsmi_plan.py) says what it answers: {"gpus": n, "values": {key: value},
"errors": {function: status code}, "delays": {function: seconds}, "missing": [function], "wrong": {function:
answer}}. A key or function with ":K" behind it is of GPU K alone, and wins. It comes from the file named
by STEPSCOPE_FAKE_AMDSMI_PLAN, read anew when it has changed, or is set with `use`.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from enum import IntEnum
from pathlib import Path
from typing import Any

PLAN = "STEPSCOPE_FAKE_AMDSMI_PLAN"
VALUES: dict[str, Any] = {
    "market_name": "AMD Stand-in MI300X", "asic_serial": None, "uuid": None, "bdf": None, "hip_id": None,
    "hip_uuid": None, "partition": 0, "compute_partition": "SPX", "memory_partition": "NPS1",
    "gfx_activity": 37, "umc_activity": 12, "vram_total": 192 << 30, "vram_used": 20 << 30,
    "current_socket_power": 412, "average_socket_power": "N/A", "socket_power": 412,
    "power_cap": 750_000_000, "default_power_cap": 750_000_000,
    "energy_accumulator": 327_680_000, "counter_resolution": 15.259,
    "hotspot": 61, "edge": "N/A", "gfx_clk": 2100, "mem_clk": 1300, "max_gfx_clk": 2100, "max_mem_clk": 1300,
    "max_pcie_width": 16, "max_pcie_speed": 32000, "pcie_width": 16, "pcie_speed": 32000,
    "pcie_bandwidth": 8000, "xgmi_links": 7, "xgmi_read": 1000, "xgmi_write": 500, "xgmi_up": 7,
    "correctable": 3, "uncorrectable": 0, "pages": [], "processes": [],
    "ppt_residency_acc": 100, "socket_thm_residency_acc": 0, "vr_thm_residency_acc": 0,
    "hbm_thm_residency_acc": 0, "prochot_residency_acc": 0, "indep_throttle_status": "N/A",
    "driver_version": "6.14.14",
}

_plan: dict[str, Any] = {}
_read_at = -1
_inits = 0
calls: list[str] = []  # functions asked for values of a device, in order


def use(plan: dict[str, Any]) -> None:
    """Answer by this plan from now on."""
    global _plan
    _plan = plan


def start_anew() -> None:
    """As in a process that has not loaded it."""
    global _inits
    _inits = 0
    calls.clear()
    use({})


def _current() -> dict[str, Any]:
    global _read_at
    path = os.environ.get(PLAN)
    if path:
        changed = Path(path).stat().st_mtime_ns
        if changed != _read_at:
            use(json.loads(Path(path).read_text()))
            _read_at = changed
    return _plan


# Status codes.
AMDSMI_STATUS_NOT_SUPPORTED, AMDSMI_STATUS_NOT_INIT = 2, 32
_STATUS = {1: "INVAL - Invalid parameters", 2: "NOT_SUPPORTED - Feature not supported",
           3: "NOT_YET_IMPLEMENTED - Feature not yet implemented",
           5: "FAIL_LOAD_SYMBOL - Fail to load symbol",
           8: "TIMEOUT - Timeout in API call", 9: "RETRY - Retry operation",
           10: "NO_PERM - Permission Denied", 12: "IO - I/O Error", 30: "BUSY - Device busy",
           31: "NOT_FOUND - Device Not found", 32: "NOT_INIT - Device not initialized",
           34: "DRIVER_NOT_LOADED - Driver not loaded",
           40: "NO_DATA - No data was found for given input"}


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code):
        err_code = abs(err_code)
        super().__init__(err_code)
        self.err_code = err_code
        self.err_info = "AMDSMI_STATUS_" + _STATUS.get(err_code, "UNKNOWN_ERROR - An unknown error occurred")

    def __str__(self):
        return f"Error code:\n\t{self.err_code} | {self.err_info}"

    def get_error_code(self):
        return self.err_code


class AmdSmiRetryException(AmdSmiLibraryException):
    def __init__(self):
        super().__init__(9)


class AmdSmiTimeoutException(AmdSmiLibraryException):
    def __init__(self):
        super().__init__(8)


class AmdSmiParameterException(AmdSmiException):
    def __init__(self, receivedValue, expectedType, msg=None):
        super().__init__(msg)
        self.err_code = None
        self.err_msg = msg or f"Invalid parameter:\nActual type: {type(receivedValue)}"

    def __str__(self):
        return self.err_msg


class AmdSmiInitFlags(IntEnum):
    INIT_ALL_PROCESSORS = 4294967295
    INIT_AMD_CPUS = 1
    INIT_AMD_GPUS = 2
    INIT_AMD_APUS = 3


class AmdSmiClkType(IntEnum):
    SYS = 0
    GFX = 0
    DF = 1
    SOC = 3
    MEM = 4


class AmdSmiTemperatureType(IntEnum):
    EDGE = 0
    HOTSPOT = 1
    JUNCTION = 1
    VRAM = 2


class AmdSmiTemperatureMetric(IntEnum):
    CURRENT = 0


class AmdSmiMemoryType(IntEnum):
    VRAM = 0
    VIS_VRAM = 1
    GTT = 2


class AmdSmiMemoryPageStatus(IntEnum):
    RESERVED = 0
    PENDING = 1
    UNRESERVABLE = 2


class AmdSmiLinkType(IntEnum):
    AMDSMI_LINK_TYPE_INTERNAL = 0
    AMDSMI_LINK_TYPE_PCIE = 1
    AMDSMI_LINK_TYPE_XGMI = 2
    AMDSMI_LINK_TYPE_NOT_APPLICABLE = 3
    AMDSMI_LINK_TYPE_UNKNOWN = 4


class Handle(ctypes.c_void_p):
    """Void after a shutdown, as the real ones are."""

    def __init__(self, index, era):
        super().__init__(index + 1)
        self.index, self.era = index, era


_era = 0


def _answer(function, index, make):
    """By the plan: a wait, an error, the answer that was planned, or the one that is made."""
    plan = _current()

    def planned(kind):
        told = plan.get(kind, {})
        return told.get(f"{function}:{index}", told.get(function))

    if function in plan.get("missing", ()):
        raise AttributeError(f"module 'amdsmi' has no attribute '{function}'")
    if (seconds := planned("delays")) is not None:
        time.sleep(seconds)
    code = planned("errors")
    if not _inits:
        code = AMDSMI_STATUS_NOT_INIT
    if code == 8:
        raise AmdSmiTimeoutException()
    if code == 9:
        raise AmdSmiRetryException()
    if code:
        raise AmdSmiLibraryException(code)
    wrong = planned("wrong")
    return make() if wrong is None else wrong


def _of(processor_handle, function, make):
    if not isinstance(processor_handle, Handle):
        raise AmdSmiParameterException(processor_handle, Handle)
    if processor_handle.era != _era:
        raise AmdSmiLibraryException(AMDSMI_STATUS_NOT_INIT)
    calls.append(function)
    index = processor_handle.index

    def value(key):
        values = _current().get("values", {})
        return values.get(f"{key}:{index}", values.get(key, VALUES[key]))

    return _answer(function, index, lambda: make(value, index))


def amdsmi_init(flag=AmdSmiInitFlags.INIT_AMD_GPUS):
    global _inits
    code = _current().get("errors", {}).get("amdsmi_init")
    if code:
        raise AmdSmiLibraryException(code)
    _inits += 1


def amdsmi_shut_down():
    global _inits, _era
    _inits -= 1
    if not _inits:
        _era += 1


def amdsmi_get_processor_handles():
    count = _current().get("gpus", 2)
    return _answer("amdsmi_get_processor_handles", None, lambda: [Handle(i, _era) for i in range(count)])
