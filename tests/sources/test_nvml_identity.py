"""Which device is which: UUIDs that are missing, twice or no text, and counts that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]
TWINS = ("uuid:0 GPU-same", "uuid:1 GPU-same", "util:0 10", "util:1 20")
NONE = ("ret nvmlDeviceGetUUID 3", "util:0 10", "util:1 20")
NO_TEXT = ("uuid \\xff\\xfe", "util:0 10", "util:1 20")


@pytest.mark.parametrize("plan", [TWINS, NONE, NO_TEXT])
def test_devices_without_a_uuid_of_their_own_are_two(start_nvml: Start, plan: tuple[str, ...]) -> None:
    child = start_nvml(*plan)
    child.open()
    child.read(times=2)
    dump = child.dump()
    assert len({device.uuid for device in dump.devices}) == 2
    assert dump.values("gpu.util") == [0.1, 0.1] and dump.values("gpu.util", gpu=1) == [0.2, 0.2]


@pytest.mark.parametrize("plan", [TWINS, NONE, NO_TEXT])
def test_of_devices_without_a_uuid_one_that_is_lost_is_never_taken_for_the_other(
    start_nvml: Start, plan: tuple[str, ...]
) -> None:
    child = start_nvml(*plan)
    child.open()
    child.read()
    child.plan.set(*plan, "ret:0 nvmlDeviceGetUtilizationRates 15", "ret:0 nvmlDeviceGetHandleByIndex_v2 15")
    child.read(times=3, step_s=61)
    dump = child.dump()
    assert dump.values("gpu.util") == [0.1] and dump.values("gpu.util", gpu=1) == [0.2] * 4
    child.plan.set(*plan)
    child.read(step_s=61)
    dump = child.dump()
    assert dump.values("gpu.util") == [0.1] * 2 and [e.kind for e in dump.events] == ["device_lost",
                                                                                      "device_back"]


def test_slices_without_a_uuid_are_not_read_as_their_card(start_nvml: Start) -> None:
    plan = ("gpus 1", "mig 1", "slices 2", "slice_used 77", "ret nvmlDeviceGetUUID 3")
    child = start_nvml(*plan)
    child.open()
    child.read()
    child.plan.set(*plan, "ret nvmlDeviceGetMemoryInfo_v2 15")
    child.read()
    child.plan.set(*plan)
    child.read(times=2, step_s=61)
    dump = child.dump()
    assert len({device.uuid for device in dump.devices}) == 3
    for device in dump.devices[1:]:
        tracks = {t.id for t in dump.tracks if t.metric == "gpu.mem_used" and t.device == device.id}
        assert {value for track, _, value in dump._samples if track in tracks} == {77}


@pytest.mark.parametrize("word", ["ones", "huge", "negative"])
def test_a_count_of_devices_that_cannot_be_is_said(start_nvml: Start, word: str) -> None:
    child = start_nvml(f"junk nvmlDeviceGetCount_v2 {word}")
    assert "cannot be" in child.ask("call", source="fast", method="open")["error"]["message"]


def test_devices_that_come_and_go_while_it_runs_leave_the_others(start_nvml: Start) -> None:
    """One that was not there at the start is not followed; the others are read as long as they answer."""
    child = start_nvml("gpus 2", "util 10")
    child.open()
    for count in (1, 4, 2):
        child.plan.set(f"gpus {count}", "util 10")
        child.read(times=3, step_s=61)
    dump = child.dump()
    assert [len(dump.values("gpu.util", gpu=gpu)) for gpu in (0, 1)] == [9, 9] and len(dump.devices) == 2
