"""Every call of AMD SMI answers every error, N/A and nonsense, is missing, or hangs: the rest is read."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from profiler.sources import amd, amd_slow
from tests.sources.amd_sources import Amd

Start = Callable[..., Amd]
GIB = 1 << 30
# What a call of a device is for.
FAST = {
    "amdsmi_get_gpu_activity": {"gpu.util", "gpu.mem_util"},
    "amdsmi_get_gpu_memory_usage": {"gpu.mem_used", "gpu.mem_free"},
    "amdsmi_get_power_info": {"gpu.power"},
    "amdsmi_get_energy_count": {"gpu.energy"},
    "amdsmi_get_temp_metric": {"gpu.temperature"},
    "amdsmi_get_clock_info": {"gpu.clock_sm", "gpu.clock_mem"},
}
SLOW: dict[str, set[str]] = {
    "amdsmi_get_gpu_metrics_info": {"gpu.throttle"},
    "amdsmi_get_link_metrics": {"gpu.nvlink_rx", "gpu.nvlink_tx", "gpu.nvlinks"},
    "amdsmi_get_gpu_xgmi_link_status": {"gpu.nvlinks"},
    "amdsmi_get_pcie_info": {"gpu.pcie_gen", "gpu.pcie_width", "gpu.pcie_both"},
    "amdsmi_get_gpu_total_ecc_count": {"gpu.ecc_corrected", "gpu.ecc_uncorrected"},
    "amdsmi_get_gpu_bad_page_info": {"gpu.rows_replaced", "gpu.rows_pending", "gpu.rows_failed"},
    "amdsmi_get_gpu_process_list": {"gpu.processes"},
}
CALLS = [("fast", call) for call in FAST] + [("slow", call) for call in SLOW]
EVERY = {"fast": set().union(*FAST.values()), "slow": set().union(*SLOW.values())}
# 32 (shut down) and 34 (driver gone) are of the library and the device: see below.
CODES = (1, 2, 3, 5, 8, 9, 10, 12, 30, 31, 40, 43, 56, 4294967294, 4294967295)
NONE = ("N/A", 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, None, math.nan, math.inf, "", True)
KEYS = ("gfx_activity", "umc_activity", "vram_used", "current_socket_power", "energy_accumulator",
        "counter_resolution", "hotspot", "gfx_clk", "mem_clk")
OF_KEY = {
    "gfx_activity": {"gpu.util"}, "umc_activity": {"gpu.mem_util"},
    "vram_used": {"gpu.mem_used", "gpu.mem_free"}, "current_socket_power": {"gpu.power"},
    "energy_accumulator": {"gpu.energy"},
    "counter_resolution": {"gpu.energy"}, "hotspot": {"gpu.temperature"}, "gfx_clk": {"gpu.clock_sm"},
    "mem_clk": {"gpu.clock_mem"},
}  # fmt: skip
NONSENSE = {"gfx_activity": 101, "umc_activity": -1, "vram_used": 193 << 30, "current_socket_power": 10**9,
            "energy_accumulator": 1 << 62, "hotspot": 61000, "gfx_clk": 10**6, "mem_clk": -5}  # fmt: skip
GOOD = {"gpu.util": 0.37, "gpu.mem_util": 0.12, "gpu.mem_used": 20 * GIB, "gpu.power": 412,
        "gpu.temperature": 61, "gpu.clock_sm": 2100, "gpu.clock_mem": 1300}  # fmt: skip


def counts(both: Amd) -> dict[tuple[str, int], int]:
    kept = [t.id for t in both.sink.tracks]
    seen = dict.fromkeys(kept, 0)
    for track, _, _ in both.sink.samples:
        seen[track] += 1
    return {(t.metric, (t.device or 0) - 1): seen[t.id] for t in both.sink.tracks}


def read(both: Amd, source: str, times: int, step_s: float) -> dict[tuple[str, int], int]:
    (both.read if source == "fast" else both.read_slow)(times, step_s)
    return counts(both)


@pytest.mark.parametrize(("source", "call"), CALLS)
def test_every_error_of_a_call_costs_what_the_call_is_for(start_amd: Start, source: str, call: str) -> None:
    for code in CODES:
        both = start_amd()
        before = read(both, source, 2, 1.0)
        both.plan(errors={f"{call}:0": code})
        after = read(both, source, 3, 1.0)
        for metric in EVERY[source]:
            lost = metric in {**FAST, **SLOW}[call]
            assert after[metric, 0] - before[metric, 0] == (0 if lost else 3), (code, metric)
            assert after[metric, 1] - before[metric, 1] == 3, (code, metric)
        fields = [e.data["field"] for e in both.sink.events]
        assert len(fields) == len(set(fields)) and {e.device for e in both.sink.events} == {1}
        both.plan()
        read(both, source, 2, 61.0)
        assert {e.kind for e in both.sink.events} == {"field_absent", "field_back"}
        assert len(both.sink.events) == 2 * len(fields)


@pytest.mark.parametrize(("source", "call"), CALLS)
def test_a_package_or_driver_without_a_call(start_amd: Start, source: str, call: str) -> None:
    both = start_amd(missing=[call])
    both.read(5)
    both.read_slow(5)
    for metric in EVERY["fast"] | EVERY["slow"]:
        there = metric not in {**FAST, **SLOW}[call] or call == "amdsmi_get_gpu_memory_usage"
        first = metric in ("gpu.nvlink_rx", "gpu.nvlink_tx", "gpu.throttle")  # which need a reading before
        for gpu in (0, 1):
            assert len(both.values(metric, gpu)) == (5 - first if there else 0), metric
    told = [(e.device, e.data["field"]) for e in both.sink.events]
    assert len(told) == len(set(told)) and {e.kind for e in both.sink.events} <= {"field_absent"}
    assert all("too old" in e.data["reason"] for e in both.sink.events)


@pytest.mark.parametrize("value", NONE, ids=repr)
@pytest.mark.parametrize("key", KEYS)
def test_no_value_is_missing_and_never_a_number(start_amd: Start, key: str, value: Any) -> None:
    others = {"socket_power:0": "N/A"} if key == "current_socket_power" else {}  # which would stand in for it
    both = start_amd(values={**others, f"{key}:0": value}, errors={"amdsmi_get_gpu_vram_usage:0": 2})
    both.read(5)
    for metric in EVERY["fast"]:
        assert len(both.values(metric)) == (0 if metric in OF_KEY[key] else 5), metric
        assert len(both.values(metric, 1)) == 5, metric
    [event] = both.sink.events
    assert event.kind == "field_absent" and event.device == 1
    both.plan()
    both.read(step_s=61.0)
    assert [e.kind for e in both.sink.events] == ["field_absent", "field_back"]


@pytest.mark.parametrize("key", NONSENSE)
def test_nonsense_costs_its_own_sample(start_amd: Start, key: str) -> None:
    both = start_amd()
    both.read(3)
    both.plan(values={f"{key}:0": NONSENSE[key]})
    both.read(3)
    both.plan()
    both.read(3)
    for metric in EVERY["fast"]:
        assert len(both.values(metric)) == (6 if metric in OF_KEY[key] else 9), metric
        assert len(both.values(metric, 1)) == 9, metric
    assert [(e.kind, e.device) for e in both.sink.events] == [("implausible", 1), ("field_back", 1)]


@pytest.mark.parametrize(("source", "call"), CALLS)
def test_answers_of_another_shape_cost_their_call_alone(start_amd: Start, source: str, call: str) -> None:
    both = start_amd()
    both.read(2)
    both.read_slow(2)
    for wrong in ({}, [], "N/A", 7, [7], {"status": 3}, {"links": None, "num_links": 3},
                  {"pcie_metric": None}):
        both.plan(wrong={f"{call}:0": wrong})
        both.read(step_s=61.0)
        both.read_slow(step_s=61.0)
    for metric in EVERY["fast"] | EVERY["slow"]:
        first = metric in ("gpu.nvlink_rx", "gpu.nvlink_tx", "gpu.throttle")
        assert len(both.values(metric, 1)) == 10 - first, metric
        if metric not in {**FAST, **SLOW}[call]:
            assert len(both.values(metric)) == 10 - first, metric
    assert {e.device for e in both.sink.events} <= {1}
    assert all(math.isfinite(v) for _, _, v in both.sink.samples)


def test_what_is_not_supported_is_asked_again_once_a_minute(start_amd: Start) -> None:
    both = start_amd(errors={"amdsmi_get_power_info:0": 2, "amdsmi_get_temp_metric:0": 12})
    both.smi.calls.clear()
    both.read(10, step_s=5.0)
    ways, sensors = 3, 2  # all tried at first, of one card; each tick asks the other card once
    assert both.smi.calls.count("amdsmi_get_power_info") == 10 + ways
    assert both.smi.calls.count("amdsmi_get_temp_metric") > 10 + 2 * sensors  # this may pass soon
    both.read(10, step_s=5.0)
    assert both.smi.calls.count("amdsmi_get_power_info") == 20 + 2 * ways


def test_a_library_that_was_shut_down_under_us_is_started_again(start_amd: Start) -> None:
    both = start_amd()
    both.read(2)
    both.smi.amdsmi_shut_down()
    both.read(2)
    for gpu in (0, 1):
        assert both.values("gpu.power", gpu) == [412] * 4 and both.values("gpu.util", gpu) == [0.37] * 4
    assert both.sink.events == []


def test_a_driver_that_went_away_is_one_lost_device_and_comes_back(start_amd: Start) -> None:
    both = start_amd()
    both.read(2)
    both.plan(errors={f"{call}:0": 34 for call in FAST})
    both.read(5)
    both.plan()
    both.read(2)
    assert len(both.values("gpu.power")) == 2 and len(both.values("gpu.power", 1)) == 9
    both.read(2, step_s=61.0)
    assert [(e.kind, e.device) for e in both.sink.events] == [("device_lost", 1), ("device_back", 1)]
    assert len(both.values("gpu.power")) == 4


@pytest.mark.parametrize(("source", "call"), CALLS)
def test_n11_a_call_that_hangs_costs_its_own_fields(
    start_amd: Start, monkeypatch: pytest.MonkeyPatch, source: str, call: str
) -> None:
    monkeypatch.setattr(amd, "PATIENCE_S", 0.2)
    monkeypatch.setattr(amd_slow, "PATIENCE_S", 0.2)
    both = start_amd()
    both.read(2)
    both.read_slow(3)
    before = counts(both)
    both.plan(delays={f"{call}:0": 3.0})
    since = time.monotonic()
    now = read(both, source, 4, 1.0)
    for metric in EVERY[source]:
        if metric not in {**FAST, **SLOW}[call]:
            assert now[metric, 0] - before[metric, 0] == 4, metric
        else:
            assert now[metric, 0] == before[metric, 0] or time.monotonic() - since > 3.0, metric
        assert now[metric, 1] - before[metric, 1] == 4, metric


def test_ten_thousand_ticks_of_faults_on_one_device(start_amd: Start) -> None:
    draw = random.Random(6)
    both = start_amd()
    for _ in range(400):
        both.plan(
            errors={f"{draw.choice(list(FAST))}:0": draw.choice((*CODES, 32, 34))
                    for _ in range(draw.randrange(3))},
            values={f"{key}:0": draw.choice((NONSENSE.get(key, "N/A"), "N/A"))
                    for key in draw.sample(KEYS, draw.randrange(3))})  # fmt: skip
        both.read(25, draw.choice((0.1, 0.1, 3.0)))
    for metric, value in GOOD.items():
        assert both.values(metric, 1) == [value] * 10_000, metric
        told = both.values(metric)
        assert 1000 < len(told) < 10_000 and set(told) == {value}, metric
    energy = both.values("gpu.energy")
    assert max(energy) - min(energy) < 1e-6 < 1000 < len(energy)
    assert {e.device for e in both.sink.events} == {1}
    by_field: dict[str, list[tuple[str, object]]] = {}
    for event in both.sink.events:
        if "field" in event.data:
            by_field.setdefault(event.data["field"], []).append((event.kind, event.data.get("reason")))
    for field, said in by_field.items():
        assert len(said) <= 20, field
        assert all(a != b for a, b in zip(said, said[1:], strict=False)), field
