"""Programs of others that come and go on a GPU for a day leave room for those of the target."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

from profiler.sources._gpu_processes import MAX_PROCESSES, GpuProcesses
from tests.fakes.sink import ListSink


def test_the_target_is_followed_after_many_programs_of_others() -> None:
    ours = set(range(7000, 7200))
    target = SimpleNamespace(pid=7000, has=lambda pid: pid in ours, processes=list)
    gpu = SimpleNamespace(id=1, index=0, binding=0, power_bound=math.inf)
    processes = GpuProcesses(cast(Any, gpu), cast(Any, target))
    sink = ListSink()
    followed = [processes.track("gpu.process_mem", pid, sink) is not None for pid in range(9000, 9100)]
    assert sum(followed) == MAX_PROCESSES
    assert processes.track("gpu.process_mem", 7100, sink) is not None
    assert sum(processes.track("gpu.process_mem", pid, sink) is not None for pid in ours) == MAX_PROCESSES
    assert processes.track("gpu.process_mem", 9000, sink) is not None, "those that were, are"
