"""What can be read but cannot be: names, numbers of devices, amounts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from profiler.importers import kineto
from tests.traces import Timeline


def test_names_that_nobody_can_read_are_cut_and_told_apart() -> None:
    long = "k" * 1_000_000
    line = Timeline().op("aten::mm", 0, 9000).call("cudaLaunchKernel", 0, 100, 1)
    line.kernel(long + "a", 200, 300, 1).kernel(long + "b", 300, 400, 1).kernel("k" * 8000, 400, 500, 1)
    trace = line.trace()
    names = [trace.names[code] for code in trace.device.name]
    assert len(set(names)) == 3 and max(map(len, names)) < 21_000 and len(names[2]) == 8000
    assert names[0].startswith("kkk") and "(1000001 characters" in names[0]
    assert sorted(names) == sorted(line.trace().names[code] for code in trace.device.name)


@pytest.mark.parametrize("device", [-1, None, "gpu", 2**40])
def test_activities_that_name_no_device(tmp_path: Path, device: Any) -> None:
    line = Timeline()
    for i in range(4):
        line.call("cudaLaunchKernel", i * 1000, i * 1000 + 100, i + 1)
        line.kernel("k", i * 1000 + 200, i * 1000 + 300, i + 1)
    document = line.document()
    kernels = [event for event in document["traceEvents"] if event["cat"] == "kernel"]
    for left, kept in ((kernels, 4), (kernels[:1], 3)):
        changed = copy.deepcopy(document)
        for event in changed["traceEvents"]:
            if event in left:
                event["args"]["device"] = event["pid"] = device
        (tmp_path / "t.json").write_text(json.dumps(changed))
        [trace] = kineto.load(tmp_path / "t.json")
        assert trace.device.device.tolist() == [0] * kept and trace.notes


@pytest.mark.parametrize("size", [10**18, -5, 2**63 - 1])
def test_amounts_that_no_device_has_are_missing(size: int) -> None:
    line = Timeline().call("cudaMemcpyAsync", 0, 100, 1)
    line.memcpy("Memcpy HtoD (Pinned -> Device)", 200, 300, 1, bytes=size)
    line.memcpy("Memcpy HtoD (Pinned -> Device)", 300, 400, 1, bytes=4096)
    line.memory(10, 512, allocated=size, reserved=1 << 30)
    trace = line.trace()
    assert trace.device.bytes.tolist() == [-1, 4096] and trace.losses.missing_values == 2
    assert (trace.memory.allocated.tolist(), trace.memory.reserved.tolist()) == ([-1], [1 << 30])
    [memory] = Timeline().op("a", 0, 9000).memory(10, 512).memory(20, 10**18).trace().memory.bytes.tolist()
    assert memory == 512
