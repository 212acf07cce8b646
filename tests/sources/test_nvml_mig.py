"""MIG (N09): the slice is the unit, and what only the card has is never a slice's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiler.sources._mig import PARENT_ONLY
from profiler.sources._probed import ProbedProcess, Times
from profiler.sources._wire import PipeSink, Taker
from tests.fakes.sink import ListSink
from tests.sources.planned import MIB

Start = Callable[..., Any]
PLAN = ("mig:1 1", "slices 2", f"slice_total {10240 * MIB}", f"slice_used {77 * MIB}", "gpm_sm 250",
        "procs 1", "ret:1 nvmlDeviceGetUtilizationRates 3")


def test_n09_slices_are_devices_with_their_own_memory_and_activity(start_nvml: Start) -> None:
    child = start_nvml(*PLAN)
    child.open()
    child.read(times=2)
    child.read_slow(times=2)
    dump = child.dump()
    cards, slices = dump.devices[:2], dump.devices[2:]
    assert [d.uuid[:6] for d in slices] == ["MIG-10", "MIG-11"] and {d.index for d in slices} == {1}
    for device in slices:
        assert device.memory_total == 10240 * MIB and device.properties["mig_parent"] == cards[1].uuid
        metrics = {t.metric for t in dump.tracks if t.device == device.id}
        assert {"gpu.mem_used", "gpu.sm_active", "gpu.processes"} <= metrics
        assert not metrics & set(PARENT_ONLY)
        assert set(device.properties["parent_only"]) == set(PARENT_ONLY) >= {"gpu.power", "gpu.util"}
        assert not [e for e in dump.events if e.device == device.id]
    assert dump.values("gpu.power", gpu=1) == [100] * 2  # once, of the card
    used = [t.id for t in dump.tracks if t.metric == "gpu.mem_used" and t.device == slices[0].id]
    assert len(used) == 1


def test_slices_and_cards_say_what_cuda_makes_of_them(start_nvml: Start) -> None:
    child = start_nvml(*PLAN)
    child.open()
    shown = [(d.properties["cuda_visible"], d.properties.get("cuda_index")) for d in child.dump().devices]
    assert shown == [(False, None), (False, None), (True, 0), (False, None)]


def test_a_slice_that_is_taken_away_leaves_the_others(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "mig 1", "slices 2")
    child.open()
    child.read()
    child.plan.set("gpus 1", "mig 1", "slices 2", "ret@5 nvmlDeviceGetMemoryInfo_v2 15")
    child.read(times=3)
    dump = child.dump()
    assert {e.kind for e in dump.events} == {"device_lost"}
    child.plan.set("gpus 1", "mig 1", "slices 2")
    child.read(step_s=61)
    assert len(child.dump().kinds("device_back")) == len(dump.events)


def test_n09_a_card_without_mig_has_no_slices(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetMigMode 3")
    child.open()
    assert len(child.dump().devices) == 1 and child.dump().events == []


def test_a_slice_comes_back_while_another_card_does_not_answer(start_nvml: Start) -> None:
    child = start_nvml("mig:1 1", "slices 1")
    child.open()
    child.read()
    child.plan.set("mig:1 1", "slices 1", "ret_all 15")
    child.read()
    child.plan.set("mig:1 1", "slices 1", "ret_all:0 15")
    child.read(step_s=61)
    back = {e.device for e in child.dump().kinds("device_back")}
    assert back == {2, 3}  # the second card, and its slice


def test_n09_what_torch_tells_of_a_slice_is_the_slices(tmp_path: Path) -> None:
    devices, sink = dict[str, int](), ListSink()
    read, write = os.pipe()
    pipe = PipeSink(write)
    pipe.add_device("GPU-cc", 0, "A100")
    for uuid, shown in (("MIG-aa", False), ("MIG-bb", True)):
        pipe.add_device(uuid, 0, "A100 MIG", properties={"mig_parent": "GPU-cc", "cuda_visible": shown})
    pipe.flush()
    Taker(sink, devices, lambda message: None).feed(os.read(read, 1 << 16))
    os.close(read)
    os.close(write)
    times = Times(lambda t: t, lambda: 1 << 50)
    for told, device in (("aa", 2), ("MIG-bb", 3), ("cc", 3)):  # with a kind, without one, and the card's
        process = ProbedProcess(7, sink, times, None, devices)
        process.take("torch", ["torch", {"version": "2", "uuid": {"0": told}}])
        process.take("memory", ["memory", 1 << 50, 0, 10, 20, 30])
        assert {t.device for t in sink.tracks} == {device}
        sink.tracks.clear()
    assert len(sink.devices) == 3


def test_n09_walls_of_permission_and_what_is_not_there_read_differently_and_name_the_slice(
    start_nvml: Start,
) -> None:
    child = start_nvml("gpus 1", "mig 1", "slices 1", "ret nvmlDeviceGetMemoryInfo 4",
                       "ret nvmlDeviceGetMemoryInfo_v2 4", "ret nvmlDeviceGetUtilizationRates 3")
    child.open()
    child.read(times=3)
    dump = child.dump()
    assert sorted(e.text for e in dump.kinds("field_absent")) == [
        "GPU 0 slice 7/0, memory is not read: no permission",
        "GPU 0, memory is not read: no permission",
        "GPU 0, utilization is not read: not supported by this device or driver"]
    assert all(not device.properties.get("unified_memory") for device in dump.devices)
