"""Training loops as small traces, built event by event."""

from __future__ import annotations

from typing import Any

from profiler.cli._common import plain
from profiler.rules.trace.diagnosis import diagnose
from tests.traces import Timeline

US = 1_000


def loop(steps: int = 6, *, wait_us: int = 0, kernels: int = 20, kernel_us: int = 20, first_us: int = 0,
         rank: int | None = None, missing: int = 0, workers: bool = False, name: str = "relu",
         number: int = 10) -> Timeline:
    """Equal steps: a fetch that takes `wait_us`, launches of 14 us, a synchronisation with the device.

    `first_us`: what the first kernel of a step lasts, where it differs, so that the next ones queue.
    The last `missing` kernels of every step are not in the trace. `number`: of the first step.
    """
    line = Timeline(rank=rank, world_size=None if rank is None else 2,
                    deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 80 << 30}])
    iterator = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
    correlation, at = 0, 0
    for k in range(steps):
        begin, at = at, at + 2 * US
        if wait_us:
            line.annotation(f"enumerate(DataLoader)#{iterator}.__next__", at, at + wait_us * US)
            at += (wait_us + 2) * US
        free = at
        for n in range(kernels):
            correlation += 1
            line.op(f"aten::{name}", at, at + 12 * US)
            line.call("cudaLaunchKernel", at + 2 * US, at + 10 * US, correlation)
            start = max(at + 12 * US, free)
            free = start + (kernel_us if n or not first_us else first_us) * US
            if n < kernels - missing:
                line.kernel(f"{name}_kernel", start, free, correlation, grid=[132, 1, 1], block=[256, 1, 1])
            at += 14 * US
        correlation += 1
        line.call("cudaStreamSynchronize", at, max(at, free) + 4 * US, correlation)
        at = max(at, free) + 6 * US
        line.step(number + k, begin, at)
    return line


def two_devices(first_us: int = 600, second_us: int = 300) -> Timeline:
    """Steps of 1 ms with one kernel on each of two devices."""
    line, correlation = Timeline(), 0
    for k in range(6):
        begin = k * 1000 * US
        line.step(k, begin, begin + 1000 * US)
        for device, long in ((0, first_us), (1, second_us)):
            correlation += 1
            at = begin + (20 + 20 * device) * US
            line.call("cudaLaunchKernel", at, at + 10 * US, correlation)
            line.kernel("gemm", at + 20 * US, at + (20 + long) * US, correlation, device=device)
    return line


def without_device(line: Timeline) -> Timeline:
    """The same with its operators and annotations alone: a loop on the CPU."""
    line.events = [e for e in line.events if e["cat"] in ("cpu_op", "user_annotation", "python_function")]
    return line


def later(line: Timeline, ns: int) -> Timeline:
    """The same, so much later."""
    for event in line.events:
        event["t0"] += ns
        event["t1"] = None if event["t1"] is None else event["t1"] + ns
    return line


def told(*timelines: Timeline, what_if: bool = True) -> dict[str, Any]:
    """The diagnosis of the traces, as JSON has it."""
    found: dict[str, Any] = plain(diagnose([line.trace() for line in timelines], "a.json", what_if).to_json())
    return found


def step_ms(wait_us: int = 0, kernels: int = 20, kernel_us: int = 20) -> float:
    """Length of a step of such a loop."""
    fetch = wait_us + 2 if wait_us else 0
    return (2 + fetch + max(14 * kernels, 12 + max(14, kernel_us) * (kernels - 1) + kernel_us) + 6) / 1000
