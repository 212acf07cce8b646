"""A stand-in for the Python package `amdsmi` of ROCm 7.0: same functions, parameters, keys and exceptions.

What it answers is planned, see _plan.py.
"""

from __future__ import annotations

from amdsmi._plan import (
    AMDSMI_STATUS_NOT_SUPPORTED,
    AmdSmiClkType,
    AmdSmiException,
    AmdSmiInitFlags,
    AmdSmiLibraryException,
    AmdSmiLinkType,
    AmdSmiMemoryPageStatus,
    AmdSmiMemoryType,
    AmdSmiParameterException,
    AmdSmiRetryException,
    AmdSmiTemperatureMetric,
    AmdSmiTemperatureType,
    AmdSmiTimeoutException,
    _of,
    amdsmi_get_processor_handles,
    amdsmi_init,
    amdsmi_shut_down,
    calls,
    start_anew,
    use,
)

__version__ = "7.0.2"
__all__ = [
    "AmdSmiClkType", "AmdSmiException", "AmdSmiInitFlags", "AmdSmiLibraryException",
    "AmdSmiLinkType", "AmdSmiMemoryPageStatus", "AmdSmiMemoryType", "AmdSmiParameterException",
    "AmdSmiRetryException", "AmdSmiTemperatureMetric", "AmdSmiTemperatureType",
    "AmdSmiTimeoutException", "amdsmi_get_processor_handles", "amdsmi_init", "amdsmi_shut_down",
    "calls", "start_anew", "use",
]


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
