"""Reports of a card that MIG splits (N09), and of a GPU without memory of its own (N02)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.report.page import page
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.analysis.test_devices import split
from tests.app.test_live_slices import unified
from tests.runs import MS, make_run


def of(path: Path) -> dict[str, Any]:
    with Run.open(path) as run:
        return page(run)


def test_n09_every_slice_is_a_device_and_the_cards_power_is_told_once(tmp_path: Path) -> None:
    told = of(split(tmp_path / "a.stepscope", told="MIG-bbbbbbbb-2222"))
    titles = [chart["title"] for chart in told["charts"]]
    assert len(titles) == len(set(titles))
    assert {"GPU 1 slice 7/0 memory", "GPU 1 slice 8/0 memory", "GPU 1 slice 8/0 activity"} <= set(titles)
    assert [title for title in titles if "power" in title] == ["GPU 1 power"]
    machine = dict(told["settings"])["Machine"]
    assert [name for name, _ in machine if name.startswith("GPU")] == [
        "GPU 1", "GPU 0", "GPU 1 slice 7/0", "GPU 1 slice 8/0"]
    figures = {name: (value, why) for name, value, why in told["figures"]}
    assert figures["GPU power"][0] == "" and figures["GPU utilization"][0] == ""
    assert "the whole card" in figures["GPU power"][1]


def test_n02_host_memory_is_labelled_and_nothing_is_said_of_room(tmp_path: Path) -> None:
    told = of(unified(tmp_path / "a.stepscope"))
    titles = [chart["title"] for chart in told["charts"]]
    assert "Host memory, shared with GPU" in titles and "GPU memory" not in titles
    assert dict(told["lacks"])["Memory of the device"].startswith("the GPU's memory is the host's")
    assert not [f for f in told["findings"] if f["title"].startswith("Memory")]
    assert any("memory is not read" in text for text in told["missing"])


def test_links_between_gpus_and_what_cuda_makes_of_them_are_told(tmp_path: Path) -> None:
    def put(writer: RunWriter, start: int) -> None:
        peers = {"00000000:11:00.0": 4, "00000000:A1:00.0": 2, "00000000:A2:00.0": 2}
        writer.add_device("GPU-a", 0, "H100", memory_total=80 << 30, properties={
            "pci_bus_id": "00000000:10:00.0", "nvlink_peers": peers, "pcie_gen": 5, "pcie_width": 16,
            "cuda_visible": True, "cuda_index": 1})
        writer.add_device("GPU-b", 1, "H100", properties={"pci_bus_id": "00000000:11:00.0",
                                                          "cuda_visible": False})

    rows = dict(dict(of(make_run(tmp_path / "a.stepscope", events=put))["settings"])["Machine"])
    for text in ("4 NVLinks to GPU 1", "4 NVLinks to switches", "PCIe 5 x16", "cuda:1"):
        assert text in rows["GPU 0"]
    assert "hidden from CUDA" in rows["GPU 1"] and "NVLink" not in rows["GPU 1"]


@pytest.mark.parametrize("value", ["x", [1], {"a": [1]}, -5, 1e300, True, None])
def test_properties_of_other_kinds_than_ours_are_no_traceback(tmp_path: Path, value: Any) -> None:
    names = ("power_limit_w", "max_clock_sm", "app_clock_sm", "power_limit_default_w", "pcie_gen",
             "pcie_width", "pcie_width_now", "pcie_gen_card", "nvlink_peers", "pci_bus_id", "cuda_visible",
             "cuda_index", "mig_parent", "gpu_instance", "compute_instance", "unified_memory", "parent_only")

    def put(writer: RunWriter, start: int) -> None:
        device = writer.add_device("MIG-a", 0, "H100", properties=dict.fromkeys(names, value))
        for metric, number in (("gpu.util", 0.9), ("gpu.clock_sm", 1000), ("gpu.throttle", 4),
                               ("gpu.pcie_gen", 4), ("gpu.pcie_width", 8), ("torch.mem_reserved", 5e9)):
            track = writer.track(metric, device=device, process=1 if "torch" in metric else None)
            for tick in range(40):
                writer.sample(track, start + (500 + 50 * tick) * MS, number)
        writer.event(start, "xid", "error", "XID", device=device, data={"xid": value})

    told = of(make_run(tmp_path / "a.stepscope", events=put,
                        properties={"torch": {"device_count": 1}}))
    assert told["charts"] and "Errors of the GPU" not in dict(told["lacks"])
