"""Tables of a trace's diagnosis: of every device, of counted steps, and none that missing kernels spoil."""

import numpy as np
import pytest

from tests.rules.trace.loops import US, later, loop, told, two_devices
from tests.traces import Timeline


def test_every_device_of_a_process_has_its_partition():
    found = told(two_devices(), what_if=False)
    assert found["device"]["id"] == 0 and [d["device"] for d in found["devices"]] == [0, 1]
    assert [d["partition_ms"]["compute"] for d in found["devices"]] == pytest.approx([0.6, 0.3])
    for device in found["devices"]:
        assert sum(device["partition_ms"].values()) == pytest.approx(device["window_ms"], abs=1e-9)
    assert found["devices"][0]["partition_ms"] == found["partition_ms"]


def test_steps_without_their_kernels_are_named():
    line = loop(8)
    kernels = [e for e in line.events if e["cat"] == "kernel"]
    for event in kernels[40:45] + kernels[80:81]:
        line.events.remove(event)
    found = told(line, what_if=False)
    assert found["gpu_data_incomplete"] == [{"step": 12, "launches": 20, "missing": 5},
                                            {"step": 14, "launches": 20, "missing": 1}]
    assert found["steps"]["numbers"] == [11, 13, 15, 16, 17]
    assert told(loop(8), what_if=False)["gpu_data_incomplete"] is None


def test_nothing_is_claimed_of_a_device_whose_kernels_are_missing():
    found, whole = told(loop(missing=5)), told(loop())
    assert [row["missing"] for row in found["gpu_data_incomplete"]] == [5] * 6
    for key in ("partition_ms", "window_ms", "devices", "queue", "gaps", "efficiency", "roofline",
                "critical_path"):
        assert found[key] is None, key
    assert whole["devices"] and whole["queue"] and whole["efficiency"] and whole["gaps"]
    assert found["launches"]["calls_per_step"] == whole["launches"]["calls_per_step"] == 20
    assert found["launches"]["cost_us"] == whole["launches"]["cost_us"]
    for key in ("latency_us", "delay_us", "short_kernels", "kernels_per_step"):
        assert found["launches"][key] is None and whole["launches"][key] is not None, key
    assert set(found["launches"]) == set(whole["launches"])


def test_exposure_is_not_told_where_compute_is_missing():
    def made(missing):
        line = loop(missing=missing)
        for k in range(6):
            at = k * 300 * US
            line.kernel("ncclDevKernel_AllReduce_Sum_f32", at, at + US, 9000 + k, stream=9)
            line.call("cudaLaunchKernel", at, at + 500, 9000 + k)
        return told(line, what_if=False)["communication"]

    spoilt, whole = made(5), made(0)
    assert spoilt["count"] > 0 and spoilt["exposed_ms"] is None
    assert spoilt["kinds"][0]["overlapped_ms"] is None
    assert whole["exposed_ms"] is not None and whole["kinds"][0]["overlapped_ms"] is not None


def test_no_device_has_no_number():
    line = Timeline()
    for k in range(6):
        line.step(k, k * 1000 * US, (k * 1000 + 990) * US)
        line.op("aten::mm", (k * 1000 + 10) * US, (k * 1000 + 900) * US)
    line.call("cudaLaunchKernel", 2020 * US, 2030 * US, 1)
    found = told(line, what_if=False)
    assert found["device"]["id"] is None and found["device"]["kind"] == "accelerator"


def test_queue_depth_is_of_the_counted_windows_alone():
    def steps(first, count, offset, line, correlation):
        for k in range(count):
            begin = offset + k * 1000 * US
            line.step(first + k, begin, begin + 1000 * US)
            for n in range(10):
                correlation += 1
                line.call("cudaLaunchKernel", begin + n * 10 * US, begin + n * 10 * US + 5 * US, correlation)
                line.kernel("g", begin + n * 90 * US + 10 * US, begin + n * 90 * US + 95 * US, correlation)
        return correlation

    apart, single = Timeline(), Timeline()
    steps(20, 4, 100_000 * US, apart, steps(4, 4, 0, apart, 0))
    steps(4, 4, 0, single, 0)
    one, two = told(single, what_if=False)["queue"][0], told(apart, what_if=False)["queue"][0]
    assert two["mean"] == pytest.approx(one["mean"]) and one["mean"] > 3 and two["max"] == one["max"]


def test_launches_are_of_the_counted_steps():
    line = later(loop(), 10_000 * US)
    for k in range(50):  # before the first step: slow, without kernels of their own
        line.call("cudaLaunchKernel", k * 100 * US, k * 100 * US + 90 * US, 9000 + k)
        line.kernel("early", k * 100 * US + 90 * US, k * 100 * US + 95 * US, 9000 + k)
    found = told(line, what_if=False)["launches"]
    assert found == {**told(loop(), what_if=False)["launches"], "held_up": found["held_up"],
                     "held_up_ms": found["held_up_ms"]}
    assert found["calls"] == 5 * 20 and found["cost_us"]["max"] == pytest.approx(8.0)


def test_modules_are_of_the_counted_steps():
    line = loop()
    begins = sorted(e["t0"] for e in line.events if e["name"].startswith("ProfilerStep"))
    for begin in begins:
        line.python("nn.Module: Net_0", begin + 1 * US, begin + 100 * US)
    [row] = told(line, what_if=False)["modules"]["rows"]
    assert row["calls"] == 5 and row["host_total_ms"] == pytest.approx(5 * 0.099)
    assert np.isfinite(row["device_total_ms"])


def test_operators_by_call_stack():
    line = loop()
    begin, end = min(e["t0"] for e in line.events), max(e["t1"] for e in line.events)
    line.python("train.py(9): main", begin, end)
    [row] = told(line, what_if=False)["operators"]["by_stack"]["rows"]
    assert row["key"] == ["aten::relu", "train.py(9): main"] and row["calls"] == 5 * 20
    assert row["device_self_ms"] == pytest.approx(5 * 20 * 0.02)
    assert told(loop(), what_if=False)["operators"]["by_stack"] is None
