"""What is read of AMD GPUs, and under which names and units."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from profiler.metrics import METRICS
from profiler.sources import _amd_fields
from profiler.sources._amd_gpu import torch_uuid
from profiler.sources.tree import TargetTree
from tests.sources.amd_sources import Amd

Start = Callable[..., Amd]
GIB = 1 << 30
FAST = {
    "gpu.util": 0.37, "gpu.mem_util": 0.12, "gpu.mem_used": 20 * GIB, "gpu.mem_free": 172 * GIB,
    "gpu.power": 412, "gpu.energy": pytest.approx(5000.07, abs=0.01), "gpu.temperature": 61,
    "gpu.clock_sm": 2100, "gpu.clock_mem": 1300,
}  # fmt: skip
SLOW = {
    "gpu.throttle": 0, "gpu.pcie_both": 1e9, "gpu.pcie_gen": 5, "gpu.pcie_width": 16, "gpu.nvlinks": 7,
    "gpu.ecc_corrected": 3, "gpu.ecc_uncorrected": 0, "gpu.rows_replaced": 0, "gpu.rows_pending": 0,
    "gpu.rows_failed": 0, "gpu.processes": 0, "gpu.nvlink_rx": 0, "gpu.nvlink_tx": 0,
}  # fmt: skip


def test_every_metric_of_every_gpu_at_every_tick(start_amd: Start) -> None:
    both = start_amd()
    both.read(times=3)
    both.read_slow(times=3)
    for gpu in (0, 1):
        for metric, value in FAST.items():
            assert both.values(metric, gpu) == [value] * 3, metric
        for metric, value in SLOW.items():
            assert both.values(metric, gpu)[-2:] == [value] * 2, metric
    assert both.sink.events == []
    assert {t.metric for t in both.sink.tracks} == FAST.keys() | SLOW.keys() <= METRICS.keys()


def test_devices_and_what_does_not_change_of_them(start_amd: Start) -> None:
    both = start_amd()
    assert both.sink.meta["amd"] == {"state": "ok", "cause": "", "reason": "", "hint": "", "vendor": "AMD",
                                     "driver": "6.14.14", "amdsmi": "7.0.2"}  # fmt: skip
    first, second = both.sink.devices
    assert (first.index, first.name, first.memory_total) == (0, "AMD Stand-in MI300X", 192 * GIB)
    assert first.uuid != second.uuid
    assert {key: first.properties[key] for key in (
        "vendor", "gfx_target", "compute_units", "pci_bus_id", "power_limit_w", "power_limit_default_w",
        "max_clock_sm", "max_clock_mem", "pcie_gen", "pcie_width", "pcie_gen_now", "pcie_width_now",
        "compute_partition", "memory_partition", "cuda_index", "cuda_visible")} == {
            "vendor": "AMD", "gfx_target": "gfx942", "compute_units": 304, "pci_bus_id": "0000:05:00.0",
            "power_limit_w": 750, "power_limit_default_w": 750, "max_clock_sm": 2100, "max_clock_mem": 1300,
            "pcie_gen": 5, "pcie_width": 16, "pcie_gen_now": 5, "pcie_width_now": 16,
            "compute_partition": "SPX", "memory_partition": "NPS1", "cuda_index": 0, "cuda_visible": True}
    assert len(first.properties["nvlink_peers"]) == 7 and "part" not in first.properties


def test_a_device_is_known_by_the_names_of_amd_smi_hip_and_torch(start_amd: Start) -> None:
    both = start_amd()
    first = both.sink.devices[0]
    hip = "GPU-4b2c1a9f8d3e6f70"
    torch = "GPU-34623263-3161-3966-3864-336536663730"  # the characters 4b2c1a9f8d3e6f70 in hex
    assert torch_uuid(hip) == torch and first.properties["hip_uuid"] == hip
    assert {both.devices[name] for name in (first.uuid, hip, torch)} == {first.id}
    assert len(both.devices) == 6


def test_a_name_that_several_devices_share_names_none(start_amd: Start) -> None:
    both = start_amd(values={"hip_uuid": "GPU-XX"})  # cards without a number of their own
    assert both.devices.keys() == {device.uuid for device in both.sink.devices}


def test_twins_are_told_apart_and_found_again(start_amd: Start) -> None:
    both = start_amd(values={"uuid": "0-0"})
    assert [d.uuid for d in both.sink.devices] == ["0-0", "0-0 (2)"]
    both.read()
    both.smi.amdsmi_shut_down()
    both.read(times=2)
    assert both.values("gpu.util", 1) == [0.37] * 3 and both.sink.events == []


@pytest.mark.parametrize("key", ["average_socket_power", "socket_power"])
def test_power_is_the_figure_that_the_card_has(key: str, start_amd: Start) -> None:
    powers = dict.fromkeys(("current_socket_power", "average_socket_power", "socket_power"), 0)
    both = start_amd(values={**powers, key: 99})
    both.read(times=2)
    assert both.values("gpu.power") == [99, 99] and both.sink.events == []


def test_older_packages_name_clocks_and_energy_otherwise(start_amd: Start) -> None:
    both = start_amd(wrong={"amdsmi_get_clock_info": {"cur_clk": 1500, "max_clk": 2100},
                            "amdsmi_get_energy_count": {"power": 2_000_000, "counter_resolution": 1.0},
                            "amdsmi_get_gpu_bad_page_info": "No bad pages found."},
                     values={"power_cap": 300}, missing=["amdsmi_get_gpu_memory_total"])
    both.read(times=2)
    both.read_slow()
    assert both.values("gpu.clock_sm") == [1500, 1500] and both.values("gpu.energy") == [2, 2]
    assert both.values("gpu.mem_used") == [20 * GIB] * 2  # by the older call, in MiB
    assert both.sink.devices[0].properties["power_limit_w"] == 300
    assert both.values("gpu.rows_replaced") == [0]


def test_energy_goes_on_over_wraps_and_resets(start_amd: Start) -> None:
    both = start_amd()
    for raw in (2**32 - 100, 2**32 - 2, 99, 199, 50, 2**63, 60, 2**50, 2**50 + 7, 2**50 + 9):
        both.plan(values={"energy_accumulator": raw, "counter_resolution": 1e6})
        both.read(step_s=61)
    # The wrap at 32 bits; a reset, from which it goes on; a leap that is none, and one that is for good.
    told = [value - 2**32 for value in both.values("gpu.energy")]
    assert told == [-100, -2, 99, 199, 199, 209, 209, 211]
    kinds = [e.kind for e in both.sink.events if e.device == 1]
    assert kinds == ["implausible", "field_back", "implausible", "field_back"]


def test_throttling_is_what_held_clocks_back_since_the_reading_before(start_amd: Start) -> None:
    both = start_amd()
    both.read_slow()
    masks = []
    for key in ("ppt_residency_acc", "prochot_residency_acc", "hbm_thm_residency_acc", None):
        values = {} if key is None else {key: 500}
        both.plan(values={"ppt_residency_acc": 100, **values})
        both.read_slow()
        masks.append(int(both.values("gpu.throttle")[-1]))
    assert masks == [0x04, 0x40, 0x20, 0]


@pytest.mark.parametrize(("status", "mask"), [(0, 0), (1, 0x04), (1 << 22, 0x04), (1 << 36, 0x20),
                                              (1 << 47, 0x40), (1 << 56, 0), (1 << 36 | 2, 0x24)])
def test_throttling_of_cards_without_residencies(status: int, mask: int, start_amd: Start) -> None:
    none = dict.fromkeys(_amd_fields.RESIDENCIES, "N/A")
    both = start_amd(values={**none, "indep_throttle_status": status})
    both.read_slow(times=2)
    assert both.values("gpu.throttle") == [mask, mask]


def test_xgmi_rates_are_between_two_readings(start_amd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr(_amd_fields.time, "monotonic", lambda: now[0])
    slow = _amd_fields.XGMI.ways[0]
    both = start_amd()
    read = slow.bind(None, both.fast.gpus[0].handle)
    assert read() == (None, None)
    for step, (got, sent) in enumerate(((3000, 1500), (100, 2500))):
        now[0] += 2.0
        both.fast.gpus[0].handle.turn += 1
        both.plan(values={"xgmi_read": got, "xgmi_write": sent})
        # 7 links, 2000 and 1000 KB each in 2 s; a counter that fell tells nothing
        assert read() == ((7e6, 3.5e6) if step == 0 else (None, 3.5e6))


def test_links_that_go_down_and_errors_are_told(start_amd: Start) -> None:
    both = start_amd()
    both.read_slow()
    both.plan(values={"xgmi_up:1": 5, "uncorrectable:0": 2, "pages:0": [0, 0, 1]})
    both.read_slow(times=2)
    assert [(e.device, e.kind, e.severity) for e in both.sink.events] == [
        (1, "ecc", "error"), (1, "rows", "warning"), (1, "rows", "warning"), (2, "nvlink", "warning")]
    assert "XGMI links that went down: 2" in both.sink.events[-1].text
    assert both.values("gpu.rows_replaced")[-1] == 2 and both.values("gpu.rows_pending")[-1] == 1


def test_processes_are_ours_or_others(start_amd: Start) -> None:
    tree = TargetTree(os.getpid())
    both = start_amd(values={"processes:0": [[os.getpid(), 4096], [0, 0], [1, 1 << 20]]}, tree=tree)
    both.read_slow(times=2)
    assert both.values("gpu.processes") == [2, 2] and both.values("gpu.other_processes") == [1, 1]
    assert both.values("gpu.process_mem", index=os.getpid()) == [4096] * 2
    assert both.values("gpu.processes", 1) == [0, 0]


def test_parts_of_a_split_card_are_devices_and_power_is_told_once(start_amd: Start) -> None:
    values = {"uuid": "one-card", "compute_partition": "CPX", **{f"partition:{i}": i for i in range(4)},
              **{f"bdf:{i}": f"0000:0c:00.{i}" for i in range(4)},
              **{f"gfx_activity:{i}": 10 * i for i in range(4)}}
    both = start_amd(gpus=4, values=values)
    both.read(times=2)
    both.read_slow(times=2)
    assert [d.uuid for d in both.sink.devices] == ["one-card", "one-card/1", "one-card/2", "one-card/3"]
    assert [d.properties.get("part") for d in both.sink.devices] == [None, 1, 2, 3]
    assert [d.properties.get("part_of") for d in both.sink.devices] == [None, *["one-card"] * 3]
    for gpu in range(4):
        assert both.values("gpu.util", gpu) == [gpu / 10] * 2
        assert len(both.values("gpu.mem_used", gpu)) == len(both.values("gpu.processes", gpu)) == 2
        for metric in ("gpu.power", "gpu.energy", "gpu.ecc_corrected", "gpu.pcie_gen", "gpu.throttle"):
            assert bool(both.values(metric, gpu)) == (gpu == 0), metric
    assert both.sink.events == []


def test_one_call_serves_the_fields_of_a_tick(start_amd: Start) -> None:
    both = start_amd(gpus=1)
    both.smi.calls.clear()
    both.read(times=3)
    assert both.smi.calls.count("amdsmi_get_gpu_activity") == 3
