"""AMD GPUs at the start: the package, the driver, what a card says of itself, and machines without one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import DeviceError
from profiler.sources import _amd_library, _find, amd
from tests.sources.amd_sources import Amd

Start = Callable[..., Amd]


def test_without_the_package_it_is_said_only_where_there_is_an_amd_gpu(
    without_amdsmi: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Amd(None)
    monkeypatch.setattr(_amd_library, "has_nvidia", lambda: False)
    for module in (amd, _amd_library):
        monkeypatch.setattr(module, "has_hardware", lambda: False)
    both.fast.open(both.sink, both.clock)
    assert both.sink.meta == {} and both.sink.events == []
    for module in (amd, _amd_library):
        monkeypatch.setattr(module, "has_hardware", lambda: True)
    with pytest.raises(DeviceError, match="amdsmi is not usable") as told:
        both.fast.open(both.sink, both.clock)
    assert "/opt/rocm/share/amd_smi" in told.value.hint
    assert both.sink.meta["gpu"]["state"] == "absent" and both.sink.meta["gpu"]["cause"] == "no_binding"
    monkeypatch.setattr(_amd_library, "has_nvidia", lambda: True)
    quiet = Amd(None)
    quiet.fast.open(quiet.sink, quiet.clock)  # its NVIDIA GPU is the one that counts
    assert quiet.sink.meta == {}


def test_a_package_without_the_drivers_library_prints_nothing(
    tmp_path: Path, without_amdsmi: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "amdsmi.py").write_text("print('Unable to find it')\nraise KeyError('libamd_smi.so')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    for module in (amd, _amd_library):
        monkeypatch.setattr(module, "has_hardware", lambda: True)
    told = amd.describe()
    assert told["cause"] == "no_binding" and "does not find the driver's library" in told["reason"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("code", "cause"), [(34, "driver_not_loaded"), (18, "driver_not_loaded"),
                                             (12, "unknown")])
def test_a_driver_that_does_not_start(code: int, cause: str, amdsmi: Any,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "has_hardware", lambda: True)
    both = Amd(amdsmi)
    both.plan(errors={"amdsmi_init": code})
    with pytest.raises(DeviceError):
        both.fast.open(both.sink, both.clock)
    assert both.sink.meta["amd"]["cause"] == cause and both.sink.devices == []


def test_no_gpu_is_no_noise_without_hardware(amdsmi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "has_hardware", lambda: False)
    monkeypatch.setattr(_amd_library, "has_nvidia", lambda: True)
    both = Amd(amdsmi).open({"gpus": 0})
    both.read()
    both.read_slow()
    both.close()
    assert both.sink.meta == {} and both.sink.events == []


def test_hardware_is_told_from_the_bus_and_the_compute_driver(tmp_path: Path) -> None:
    assert not _amd_library.has_hardware(tmp_path)
    device = tmp_path / "bus/pci/devices/0000:05:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1002\n")
    (device / "class").write_text("0x040300\n")  # the card's sound
    assert not _amd_library.has_hardware(tmp_path)
    (device / "class").write_text("0x120000\n")
    assert _amd_library.has_hardware(tmp_path)
    node = tmp_path / "two/class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "gpu_id").write_text("0\n")  # a CPU
    assert not _amd_library.has_hardware(tmp_path / "two")
    (node / "gpu_id").write_text("29122\n")
    assert _amd_library.has_hardware(tmp_path / "two")


def test_describe_tells_what_the_doctor_shows(amdsmi: Any) -> None:
    amdsmi.use({})
    told = amd.describe()
    assert told["state"] == "ok" and told["driver"] == "6.14.14" and len(told["devices"]) == 2
    assert told["devices"][0]["vendor"] == "AMD" and told["failures"] == []


OPENING = (
    "amdsmi_get_gpu_device_uuid", "amdsmi_get_gpu_device_bdf", "amdsmi_get_gpu_enumeration_info",
    "amdsmi_get_gpu_kfd_info", "amdsmi_get_gpu_asic_info", "amdsmi_get_gpu_driver_info",
    "amdsmi_get_gpu_compute_partition", "amdsmi_get_gpu_memory_partition", "amdsmi_get_power_cap_info",
    "amdsmi_get_pcie_info", "amdsmi_get_gpu_memory_total", "amdsmi_get_link_metrics",
)  # fmt: skip


@pytest.mark.parametrize("call", OPENING)
def test_whatever_a_card_says_of_itself_it_is_read(start_amd: Start, call: str) -> None:
    plans: list[dict[str, Any]] = [{"errors": {f"{call}:0": code}} for code in (2, 10, 12, 4294967295)]
    plans += [{"wrong": {f"{call}:0": answer}} for answer in (
        {}, [], "N/A", "", 7, {"market_name": None, "hip_id": "N/A", "hip_uuid": 7, "power_cap": 1 << 62},
        {"pcie_static": 3, "pcie_metric": {"pcie_speed": -1}}, {"num_links": 99, "links": [1]})]
    for plan in plans:
        both = start_amd(**plan)
        both.read(2)
        assert both.values("gpu.util", 0) == both.values("gpu.util", 1) == [0.37] * 2, plan
        assert len(both.sink.devices) == 2 and not {d.name for d in both.sink.devices} & {"", "None"}
        json.dumps([dict(device.properties) for device in both.sink.devices])
        assert 0 < both.sink.devices[0].properties.get("power_limit_w", 1) <= 10_000


def test_n11_a_card_that_hangs_at_the_start_leaves_the_others(
    start_amd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_find, "PATIENCE_S", 0.2)
    both = start_amd(gpus=3, delays={"amdsmi_get_gpu_asic_info:1": 3.0})
    both.read(3)
    assert [d.index for d in both.sink.devices] == [0, 2] and both.values("gpu.util", 2) == [0.37] * 3
    [event] = both.of("device_absent")
    assert "GPU 1" in event.text and "does not return" in event.text


def test_a_driver_that_cannot_count_says_so(amdsmi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "has_hardware", lambda: True)
    both = Amd(amdsmi)
    both.plan(errors={"amdsmi_get_processor_handles": 12})
    with pytest.raises(DeviceError, match="does not count its GPUs"):
        both.fast.open(both.sink, both.clock)


def test_a_package_on_a_machine_without_gpus_is_no_driver(
    amdsmi: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (amd, _amd_library):
        monkeypatch.setattr(module, "has_hardware", lambda: False)
    monkeypatch.setattr(_amd_library, "has_nvidia", lambda: False)
    both = Amd(amdsmi)
    both.plan(gpus=0)
    with pytest.raises(DeviceError, match="No GPU was found"):
        both.fast.open(both.sink, both.clock)
    assert both.sink.meta["gpu"]["state"] == "absent"
