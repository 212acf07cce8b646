"""Small traces that are whole: what the fuzzing damages."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.reference import TRACES
from tests.traces import Timeline

SMALL = 100_000    # bytes of a compressed real trace that is taken whole
EXCERPT = 1500     # events of a larger one


@dataclass(frozen=True)
class Healthy:
    """A trace by name; `document` gives it decoded."""

    name: str
    document: Callable[[], dict[str, Any]]


def training(steps: int = 4) -> Timeline:
    """A loop with everything that has a meaning of its own: loader, two host threads, two streams,
    collectives, a graph, pageable copies, scalar reads, the allocator, named work."""
    line = Timeline(rank=0, world_size=2, deviceProperties=[{"id": 0, "name": "NVIDIA A100-SXM4-40GB",
                                                             "computeMajor": 8, "computeMinor": 0,
                                                             "numSms": 108, "warpSize": 32,
                                                             "maxThreadsPerMultiprocessor": 2048,
                                                             "regsPerMultiprocessor": 65536,
                                                             "sharedMemPerMultiprocessor": 167936}])
    shape: dict[str, Any] = {"dims": [[64, 128], [128, 256]], "types": ["float", "float"]}
    nccl = {"Collective name": "allreduce", "dtype": "Float", "Group size": 2, "In msg nelems": 32768,
            "Out msg nelems": 32768, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
    config = {"grid": [128, 1, 1], "block": [256, 1, 1], "registers": 32, "shared": 1024}
    for k in range(steps):
        t, c = 1_000_000 * k, 100 * (k + 1)
        line.step(k + 3, t, t + 990_000)
        line.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 5_000, t + 100_000)
        line.op("aten::to", t + 110_000, t + 150_000, external=c)
        line.call("cudaMemcpyAsync", t + 112_000, t + 145_000, c)
        line.memcpy("Memcpy HtoD (Pageable -> Device)", t + 115_000, t + 144_000, c, bytes=65536)
        line.call("cudaStreamSynchronize", t + 146_000, t + 149_000, c + 90)
        line.sync_row("Stream Sync", t + 146_000, t + 149_000, c + 90)
        line.python("nn.Module: Linear_0", t + 151_000, t + 250_000, **{"Python id": c})
        for i in range(1, 6):
            a = t + 140_000 + 20_000 * i
            line.op("aten::addmm", a, a + 15_000, external=c + i, sequence=c + i, **shape)
            line.call("cudaLaunchKernel", a + 3_000, a + 9_000, c + i, external=c + i)
            line.kernel("ampere_sgemm_128x64_tn", a + 12_000, a + 40_000 + i, c + i, **config)
        line.memory(t + 160_000, 131_072, allocated=10**6 + k, reserved=2 * 10**6)
        line.call("cudaMalloc", t + 262_000, t + 280_000, c + 6)
        line.op("autograd::engine::evaluate_function: AddmmBackward0", t + 300_000, t + 400_000, thread=2,
                sequence=c + 1, forward_thread=1)
        line.op("AddmmBackward0", t + 301_000, t + 399_000, thread=2, sequence=c + 1, forward_thread=1)
        line.call("cudaLaunchKernel", t + 310_000, t + 320_000, c + 7, thread=2)
        line.kernel("ampere_sgemm_64x64_nt", t + 330_000, t + 420_000, c + 7, **config)
        line.call("cudaEventRecord", t + 321_000, t + 323_000, c + 8, thread=2)
        line.call("cudaStreamWaitEvent", t + 324_000, t + 326_000, c + 9, thread=2)
        line.op("record_param_comms", t + 327_000, t + 345_000, thread=2, **nccl)
        line.call("cudaLaunchKernelExC", t + 330_000, t + 340_000, c + 10, thread=2)
        line.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 421_000, t + 500_000, c + 10, stream=20,
                    **nccl)
        line.annotation("Optimizer.step#SGD.step", t + 410_000, t + 600_000)
        line.call("cudaStreamWaitEvent", t + 412_000, t + 414_000, c + 11)
        line.call("cudaGraphLaunch", t + 420_000, t + 440_000, c + 12)
        line.kernel("multi_tensor_apply_kernel", t + 505_000, t + 530_000, c + 12)
        line.kernel("multi_tensor_apply_kernel", t + 531_000, t + 550_000, c + 12)
        line.call("cudaMemsetAsync", t + 610_000, t + 615_000, c + 13)
        line.memset(t + 620_000, t + 622_000, c + 13, bytes=4096)
        line.op("aten::_local_scalar_dense", t + 630_000, t + 700_000, external=c + 14)
        line.call("cudaMemcpyAsync", t + 632_000, t + 640_000, c + 14)
        line.memcpy("Memcpy DtoH (Device -> Pageable)", t + 641_000, t + 643_000, c + 14, bytes=4)
        line.call("cudaStreamSynchronize", t + 645_000, t + 690_000, c + 91)
        line.annotation("save checkpoint", t + 720_000, t + 900_000)
        line.memory(t + 910_000, -131_072, allocated=900_000, reserved=2 * 10**6)
        line.call("cudaFree", t + 920_000, t + 960_000, c + 15)
    return line


def _real(path: Path) -> dict[str, Any]:
    """A small trace whole; of a large one a middle part, with what it says once."""
    doc = msgspec.json.decode(gzip.decompress(path.read_bytes()))
    if path.stat().st_size <= SMALL:
        return doc
    events = doc["traceEvents"]
    once = [e for e in events if e.get("ph") == "M"][:20]
    timed = sorted((e for e in events if e.get("ph") in ("X", "i") and e.get("cat") != "Trace"),
                   key=lambda e: float(e["ts"]))
    at = len(timed) // 2
    starts = (i for i in range(at, len(timed)) if str(timed[i].get("name")).startswith("ProfilerStep"))
    start = next(starts, at)
    return {**doc, "traceEvents": once + timed[start:start + EXCERPT]}


def healthy(real: bool = True) -> tuple[Healthy, ...]:
    """Synthetic traces in each form; with `real` also the reference's small ones and parts of the large."""
    line = training()
    found = [Healthy(f"{spelling}-{times}", lambda s=spelling, t=times: line.document(s, t))
             for spelling in ("new", "old") for times in ("base", "float", "int")]
    if real:
        found += [Healthy(path.name.removesuffix(".json.gz"), lambda path=path: _real(path))
                  for path in sorted(TRACES.glob("*.json.gz"))]
    return tuple(found)
