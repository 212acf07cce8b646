"""Categories in every spelling, and what is done with them."""

from __future__ import annotations

from typing import Any

from profiler.trace.model import Kind

# What is read of an event: the group of its category.
OPERATORS, CALLS, PLAIN, DEVICE, SYNCS, SKIPPED, UNKNOWN = range(7)
OLD_OPERATOR = 64  # an annotation or an operator: in old spelling the category does not tell

_KINDS = {
    "cpu_op": Kind.OPERATOR, "operator": OLD_OPERATOR, "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON, "runtime": Kind.RUNTIME, "driver": Kind.DRIVER, "overhead": Kind.OVERHEAD,
    "kernel": Kind.KERNEL, "concurrent_kernel": Kind.KERNEL, "gpu_kernel": Kind.KERNEL,
    "memcpy": Kind.MEMCPY, "memset": Kind.MEMSET, "hpu_op": Kind.DEVICE_OTHER,
    "mtia_ccp_events": Kind.DEVICE_OTHER,
}
# No work: copies of annotations, spans of the profiler itself, counters over evenly cut ranges, markers.
_SKIPPED = {"gpu_user_annotation", "trace", "cuda_profiler_range", "cuda_event", "gpu_pm_counter", "ac2g",
            "fwdbwd", "async_cpu_to_gpu", "async"}
_GROUPS: dict[int, int] = {
    Kind.OPERATOR: OPERATORS, OLD_OPERATOR: OPERATORS, Kind.ANNOTATION: OPERATORS, Kind.PYTHON: PLAIN,
    Kind.OVERHEAD: PLAIN, Kind.RUNTIME: CALLS, Kind.DRIVER: CALLS}


class Categories(dict[Any, int]):
    """Group and kind of a category in any spelling, as group * 256 + kind."""

    def __missing__(self, key: Any) -> int:
        text = str(key or "").strip().lower()
        ends = (_KINDS[end] for end in ("runtime", "driver", "memcpy", "memset") if text.endswith("_" + end))
        kind = int(_KINDS.get(text, next(ends, Kind.HOST_OTHER)))
        group = (SKIPPED if text in _SKIPPED else SYNCS if text.endswith("_sync") else
                 UNKNOWN if kind == Kind.HOST_OTHER else _GROUPS.get(kind, DEVICE))
        self[key] = group * 256 + kind
        return self[key]
