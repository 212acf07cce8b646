"""Devices and libraries that go away while they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]


def test_n17_library_shut_down_under_us_is_started_again(start_nvml: Start) -> None:
    child = start_nvml("gpus 2", "util 1")
    child.open()
    child.read()
    child.plan.set("gpus 2", "util 2", "lost_init 1")
    child.read(times=2)
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.util") == [0.01, 0.02, 0.02] == dump.values("gpu.util", gpu=1)
    assert dump.values("gpu.pcie_rx") == [1_000_000]
    assert dump.events == []


def test_n17_one_call_that_stays_uninitialized_costs_that_field_alone(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret@20 nvmlDeviceGetUtilizationRates 1")
    child.open()
    child.read(times=100)
    dump = child.dump()
    assert len(dump.values("gpu.util")) == 19 and len(dump.values("gpu.power")) == 100
    assert child.do("epoch") == 2  # it was started again once, not at every try
    assert len(dump.kinds("field_absent")) == 1


def test_lost_device_is_off_and_the_others_go_on(start_nvml: Start) -> None:
    child = start_nvml()
    child.open()
    child.read()
    child.plan.set("ret_all:0 15")
    child.read(times=5)
    child.read_slow(times=2)
    dump = child.dump()
    assert len(dump.values("gpu.util")) == 1 and len(dump.values("gpu.util", gpu=1)) == 6
    assert dump.values("gpu.pcie_rx") == [] and len(dump.values("gpu.pcie_rx", gpu=1)) == 2
    (event,) = dump.events
    assert (event.kind, event.severity, event.device) == ("device_lost", "error", 1)
    child.plan.set()
    child.read(step_s=61)
    dump = child.dump()
    assert len(dump.values("gpu.util")) == 2
    assert [e.kind for e in dump.events] == ["device_lost", "device_back"]


def test_device_that_does_not_answer_at_the_start_leaves_the_others(start_nvml: Start) -> None:
    child = start_nvml("gpus 3", "ret:1 nvmlDeviceGetHandleByIndex_v2 15")
    child.open()
    child.read()
    dump = child.dump()
    assert [d.index for d in dump.devices] == [0, 2] and len(dump.values("gpu.util", gpu=2)) == 1
    assert [e.kind for e in dump.events] == ["device_absent"] and "GPU 1" in dump.events[0].text


def test_close_while_a_slow_call_is_in_flight_shuts_nothing_down(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read_slow()
    child.do("call", source="fast", method="close")
    child.plan.set("gpus 1", "ret nvmlInitWithFlags 18")  # once shut down, it would not come back
    child.read_slow()
    assert child.dump().values("gpu.pcie_rx") == [1_000_000] * 2
    child.do("call", source="slow", method="close")


A, B, C = (f"GPU-0000000{n}" for n in "abc")
BEFORE = (f"uuid:0 {A}", f"uuid:1 {B}", f"uuid:2 {C}", "util:0 10", "util:1 20", "util:2 30")


@pytest.mark.parametrize(("after", "seen"), [
    # Under the number of another, which is under its own: the driver counts anew.
    (("gpus 3", f"uuid:0 {C}", f"uuid:1 {B}", f"uuid:2 {A}", "util:0 33", "util:1 20", "util:2 11"),
     [11, 20, 33]),
    # There are fewer, and its number is no device's any more.
    (("gpus 2", f"uuid:0 {A}", f"uuid:1 {C}", "util:0 10", "util:1 33"), [10, None, 33]),
    # Its number is of a device that answers nothing.
    (("gpus 4", f"uuid:0 {A}", f"uuid:1 {B}", "uuid:2 x", f"uuid:3 {C}", "util:0 10", "util:1 20",
      "util:3 33", "ret_all:2 15"), [10, 20, 33]),
])
def test_devices_come_back_under_other_numbers_and_are_told_by_their_uuid(
    start_nvml: Start, after: tuple[str, ...], seen: list[int | None]
) -> None:
    child = start_nvml("gpus 3", *BEFORE)
    child.open()
    child.read()
    child.plan.set("gpus 3", *BEFORE, "ret_all 15")
    child.read()
    child.plan.set(*after)
    child.read(times=2, step_s=61)
    dump = child.dump()
    values = {device.uuid: dump.values("gpu.util", gpu=device.index) for device in dump.devices}
    for (uuid, found), first, now in zip(values.items(), (0.1, 0.2, 0.3), seen, strict=True):
        assert found == [first] + ([now / 100] * 2 if now is not None else []), uuid
    assert len(dump.devices) == 3 and len(dump.kinds("device_lost")) == 3
    assert len(dump.kinds("device_back")) == len([now for now in seen if now is not None])
