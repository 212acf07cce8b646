"""Print the shape of the package `amdsmi` that this process finds, as far as it is used, as one JSON line."""

from __future__ import annotations

import inspect
import json
from enum import IntEnum
from typing import Any

import amdsmi

CALLS: dict[str, tuple[str, ...]] = {
    "amdsmi_get_gpu_device_uuid": (), "amdsmi_get_gpu_device_bdf": (), "amdsmi_get_gpu_enumeration_info": (),
    "amdsmi_get_gpu_kfd_info": (), "amdsmi_get_gpu_asic_info": (), "amdsmi_get_gpu_driver_info": (),
    "amdsmi_get_gpu_compute_partition": (), "amdsmi_get_gpu_memory_partition": (),
    "amdsmi_get_power_cap_info": (), "amdsmi_get_gpu_activity": (), "amdsmi_get_power_info": (),
    "amdsmi_get_gpu_memory_total": ("AmdSmiMemoryType.VRAM",),
    "amdsmi_get_gpu_memory_usage": ("AmdSmiMemoryType.VRAM",),
    "amdsmi_get_gpu_vram_usage": (), "amdsmi_get_energy_count": (),
    "amdsmi_get_temp_metric": ("AmdSmiTemperatureType.HOTSPOT", "AmdSmiTemperatureMetric.CURRENT"),
    "amdsmi_get_clock_info": ("AmdSmiClkType.GFX",), "amdsmi_get_pcie_info": (),
    "amdsmi_get_link_metrics": (), "amdsmi_get_gpu_xgmi_link_status": (),
    "amdsmi_get_gpu_total_ecc_count": (), "amdsmi_get_gpu_bad_page_info": (),
    "amdsmi_get_gpu_process_list": (), "amdsmi_get_gpu_metrics_info": (),
}  # fmt: skip
OTHERS = ("amdsmi_init", "amdsmi_shut_down", "amdsmi_get_processor_handles")
ENUMS = ("AmdSmiInitFlags", "AmdSmiMemoryType", "AmdSmiTemperatureType", "AmdSmiTemperatureMetric",
         "AmdSmiClkType", "AmdSmiLinkType", "AmdSmiMemoryPageStatus")
EXCEPTIONS = ("AmdSmiException", "AmdSmiLibraryException", "AmdSmiRetryException", "AmdSmiTimeoutException",
              "AmdSmiParameterException")


def _member(name: str) -> Any:
    kind, _, member = name.partition(".")
    return getattr(getattr(amdsmi, kind), member)


def _shape(value: Any) -> Any:
    """Keys of what is a dictionary, of the first of a list; kinds of numbers and texts are not told apart."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [_shape(value[0])] if value and isinstance(value[0], dict) else []
    return None


def _failure(name: str) -> dict[str, Any]:
    kind = getattr(amdsmi, name)
    error = kind(2) if name == "AmdSmiLibraryException" else None
    return {"bases": [base.__name__ for base in kind.__mro__],
            "said": {"code": error.err_code, "info": error.err_info, "text": str(error)} if error else None}


amdsmi.amdsmi_init()
standin = amdsmi.amdsmi_get_processor_handles() if hasattr(amdsmi, "use") else []
if standin:
    amdsmi.use({"values": {"processes": [[1, 2]], "pages": []}})
handle = standin[0] if standin else amdsmi.amdsmi_interface.amdsmi_wrapper.amdsmi_processor_handle()
USED = ("ppt_residency_acc", "socket_thm_residency_acc", "vr_thm_residency_acc", "hbm_thm_residency_acc",
        "prochot_residency_acc", "indep_throttle_status")
keys = {name: _shape(getattr(amdsmi, name)(handle, *map(_member, arguments)))
        for name, arguments in CALLS.items()}
# The real one has some hundred keys here; those that are used are compared.
keys["amdsmi_get_gpu_metrics_info"] = {
    key: None for key in USED if key in keys["amdsmi_get_gpu_metrics_info"]}
print(json.dumps({
    "version": getattr(amdsmi, "__version__", ""),
    "parameters": {name: list(inspect.signature(getattr(amdsmi, name)).parameters)
                   for name in (*CALLS, *OTHERS)},
    "members": {name: {key: int(value) for key, value in getattr(amdsmi, name).__members__.items()}
                for name in ENUMS if issubclass(getattr(amdsmi, name), IntEnum)},
    "keys": keys,
    "exceptions": {name: _failure(name) for name in EXCEPTIONS},
}))
