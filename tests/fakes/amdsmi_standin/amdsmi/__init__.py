"""A stand-in for the Python package `amdsmi` of ROCm 7.0: same functions, parameters, keys and exceptions.

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

__version__ = "7.0.2"

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


def _serial(value, index):
    return value("asic_serial") or f"0x{0x4B2C1A9F8D3E6F70 + index:016X}"


def amdsmi_get_gpu_device_uuid(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_device_uuid", lambda value, i:
               value("uuid") or f"a0ff74a1-0000-1000-80{i:02x}-4b2c1a9f8d3e")


def amdsmi_get_gpu_device_bdf(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_device_bdf", lambda value, i:
               value("bdf") or f"0000:{5 + i:02x}:00.0")


def amdsmi_get_gpu_enumeration_info(processor_handle):
    def make(value, i):
        hip = value("hip_id")
        return {"drm_render": 128 + i, "drm_card": i, "hsa_id": i + 2, "hip_id": i if hip is None else hip,
                "hip_uuid": value("hip_uuid") or "GPU-" + _serial(value, i)[2:].lower()}

    return _of(processor_handle, "amdsmi_get_gpu_enumeration_info", make)


def amdsmi_get_gpu_kfd_info(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_kfd_info", lambda value, i:
               {"kfd_id": 4096 + i, "node_id": i + 2, "current_partition_id": value("partition")})


def amdsmi_get_gpu_asic_info(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_asic_info", lambda value, i: {
        "market_name": value("market_name"), "vendor_id": "0x1002",
        "vendor_name": "Advanced Micro Devices Inc", "subvendor_id": "0x1002", "device_id": "0x74a1",
        "rev_id": "0x00", "asic_serial": _serial(value, i), "oam_id": i, "num_compute_units": 304,
        "target_graphics_version": "gfx942", "subsystem_id": "0x74a1"})


def amdsmi_get_gpu_driver_info(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_driver_info", lambda value, i: {
        "driver_name": "amdgpu", "driver_version": value("driver_version"), "driver_date": "2015/01/01"})


def amdsmi_get_gpu_compute_partition(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_compute_partition",
               lambda value, i: value("compute_partition"))


def amdsmi_get_gpu_memory_partition(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_memory_partition",
               lambda value, i: value("memory_partition"))


def amdsmi_get_power_cap_info(processor_handle):
    return _of(processor_handle, "amdsmi_get_power_cap_info", lambda value, i: {
        "power_cap": value("power_cap"), "default_power_cap": value("default_power_cap"), "dpm_cap": 2100,
        "min_power_cap": 0, "max_power_cap": value("default_power_cap")})


def amdsmi_get_gpu_activity(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_activity", lambda value, i: {
        "gfx_activity": value("gfx_activity"), "umc_activity": value("umc_activity"), "mm_activity": "N/A"})


def amdsmi_get_gpu_memory_total(processor_handle, mem_type):
    return _of(processor_handle, "amdsmi_get_gpu_memory_total", lambda value, i: value("vram_total"))


def amdsmi_get_gpu_memory_usage(processor_handle, mem_type):
    return _of(processor_handle, "amdsmi_get_gpu_memory_usage", lambda value, i: value("vram_used"))


def amdsmi_get_gpu_vram_usage(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_vram_usage", lambda value, i: {
        "vram_total": value("vram_total") >> 20, "vram_used": value("vram_used") >> 20})


def amdsmi_get_power_info(processor_handle):
    return _of(processor_handle, "amdsmi_get_power_info", lambda value, i: {
        **{key: value(key) for key in ("socket_power", "current_socket_power", "average_socket_power")},
        "gfx_voltage": "N/A", "soc_voltage": "N/A", "mem_voltage": "N/A", "power_limit": value("power_cap")})


def amdsmi_get_energy_count(processor_handle):
    return _of(processor_handle, "amdsmi_get_energy_count", lambda value, i: {
        "energy_accumulator": value("energy_accumulator"), "counter_resolution": value("counter_resolution"),
        "timestamp": 1})


def amdsmi_get_temp_metric(processor_handle, sensor_type, metric):
    key = "hotspot" if sensor_type == AmdSmiTemperatureType.HOTSPOT else "edge"

    def make(value, i):
        if value(key) == "N/A":
            raise AmdSmiLibraryException(AMDSMI_STATUS_NOT_SUPPORTED)
        return value(key)

    return _of(processor_handle, "amdsmi_get_temp_metric", make)


def amdsmi_get_clock_info(processor_handle, clock_type):
    key = "gfx_clk" if clock_type == AmdSmiClkType.GFX else "mem_clk"
    return _of(processor_handle, "amdsmi_get_clock_info", lambda value, i: {
        "clk": value(key), "min_clk": 132, "max_clk": value(f"max_{key}"), "clk_locked": False,
        "clk_deep_sleep": 0})


def amdsmi_get_pcie_info(processor_handle):
    counts = ("pcie_replay_count", "pcie_l0_to_recovery_count", "pcie_replay_roll_over_count",
              "pcie_nak_sent_count", "pcie_nak_received_count", "pcie_lc_perf_other_end_recovery_count")
    return _of(processor_handle, "amdsmi_get_pcie_info", lambda value, i: {
        "pcie_static": {"max_pcie_width": value("max_pcie_width"), "max_pcie_speed": value("max_pcie_speed"),
                        "pcie_interface_version": 5, "slot_type": "OAM"},
        "pcie_metric": {"pcie_width": value("pcie_width"), "pcie_speed": value("pcie_speed"),
                        "pcie_bandwidth": value("pcie_bandwidth"), **dict.fromkeys(counts, 0)}})


def amdsmi_get_link_metrics(processor_handle):
    def make(value, i):
        links = [{"bdf": f"0000:{0x50 + k:02x}:00.0", "bit_rate": 32, "max_bandwidth": 512,
                  "link_type": 2 if k < value("xgmi_links") else 4,
                  "read": value("xgmi_read"), "write": value("xgmi_write")} for k in range(8)]
        return {"num_links": 8, "links": links}

    return _of(processor_handle, "amdsmi_get_link_metrics", make)


def amdsmi_get_gpu_xgmi_link_status(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_xgmi_link_status", lambda value, i: {
        "status": ["U" if k < value("xgmi_up") else "D" for k in range(value("xgmi_links"))],
        "total_links": value("xgmi_links")})


def amdsmi_get_gpu_total_ecc_count(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_total_ecc_count", lambda value, i: {
        "correctable_count": value("correctable"), "uncorrectable_count": value("uncorrectable"),
        "deferred_count": 0})


def amdsmi_get_gpu_bad_page_info(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_bad_page_info", lambda value, i: [
        {"value": k, "page_address": k << 12, "page_size": 4096, "status": status}
        for k, status in enumerate(value("pages"))])


def amdsmi_get_gpu_process_list(processor_handle):
    return _of(processor_handle, "amdsmi_get_gpu_process_list", lambda value, i: [
        {"name": "python", "pid": pid, "mem": memory, "engine_usage": {"gfx": 0, "enc": 0},
         "memory_usage": {"gtt_mem": 0, "cpu_mem": 0, "vram_mem": memory}, "cu_occupancy": "N/A"}
        for pid, memory in value("processes")])


def amdsmi_get_gpu_metrics_info(processor_handle):
    keys = ("ppt_residency_acc", "socket_thm_residency_acc", "vr_thm_residency_acc", "hbm_thm_residency_acc",
            "prochot_residency_acc", "indep_throttle_status")
    return _of(processor_handle, "amdsmi_get_gpu_metrics_info", lambda value, i: {
        key: value(key) for key in keys})
