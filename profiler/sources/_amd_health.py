"""How an AMD GPU is and who uses it: memory errors, retired pages, XGMI links that are up, processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from profiler.sources._amd_fields import needed, number, xgmi_links
from profiler.sources._amd_gpu import AmdGpu
from profiler.sources._amd_library import NOT_TOLD, Asked
from profiler.sources._fields import MEMORY_BOUND, Field, Values, Way
from profiler.sources._gpu_processes import GpuProcesses, name_of, plausible
from profiler.sources._health import COUNT_BOUND, Counts, Watch
from profiler.sources._library import Missing
from profiler.sources._relay import Job

MAX_LINKS = 64
PAGES = ("RESERVED", "PENDING", "UNRESERVABLE")  # retired; at the next reset; could not be


def _ecc(_: Any, asked: Asked) -> Callable[[], Values]:
    def read() -> Values:
        said = asked("amdsmi_get_gpu_total_ecc_count")
        return needed(said, "correctable_count"), needed(said, "uncorrectable_count")

    return read


def _pages(_: Any, asked: Asked) -> Callable[[], Values]:
    kinds = [asked.enum("AmdSmiMemoryPageStatus", kind) for kind in PAGES]

    def read() -> Values:
        said = asked("amdsmi_get_gpu_bad_page_info")
        if isinstance(said, str):  # older packages tell in words that there are none
            if "no bad pages" not in said.lower():
                raise Missing(NOT_TOLD)
            said = []
        found = [page["status"] for page in said]
        return tuple(found.count(kind) for kind in kinds)

    return read


def _links_up(_: Any, asked: Asked) -> Callable[[], Values]:
    def read() -> Values:
        if not xgmi_links(asked):
            raise Missing(NOT_TOLD)
        states = asked("amdsmi_get_gpu_xgmi_link_status")["status"]
        if not set(states) & {"U", "D", "X"}:
            raise Missing(NOT_TOLD)
        return (states.count("U"),)

    return read


COUNTS = (
    (Field("memory errors (ECC)", ("gpu.ecc_corrected", "gpu.ecc_uncorrected"), (Way(_ecc),), COUNT_BOUND),
     (Watch("gpu.ecc_corrected", "ecc", "info", "corrected memory errors: {n}"),
      Watch("gpu.ecc_uncorrected", "ecc", "error", "memory errors that cannot be corrected: {n}"))),
    (Field("retired pages of memory", ("gpu.rows_replaced", "gpu.rows_pending", "gpu.rows_failed"),
           (Way(_pages, {"method": "pages"}),), COUNT_BOUND),
     (Watch("gpu.rows_replaced", "rows", "warning", "pages of memory that were retired: {n}"),
      Watch("gpu.rows_pending", "rows", "warning", "pages of memory wait for a reset to be retired", 0.0),
      Watch("gpu.rows_failed", "rows", "error", "pages of memory could not be retired", 0.0))),
    (Field("XGMI links", ("gpu.nvlinks",), (Way(_links_up, {"method": "XGMI"}),), MAX_LINKS),
     (Watch("gpu.nvlinks", "nvlink", "warning", "XGMI links that went down: {n}", falls=True),)),
)  # fmt: skip


class AmdProcesses(GpuProcesses):
    """The processes of one AMD GPU and their device memory."""

    def _bind(self, nvml: Any, handle: Asked) -> Callable[[], Values]:
        most = float(self._gpu.memory_total or MEMORY_BOUND)

        return lambda: self._counted(listed(handle, most))


def listed(asked: Asked, most: float) -> dict[int, int | None]:
    """pid -> B. Implausible as `plausible` has it."""
    found = dict(map(_process, asked("amdsmi_get_gpu_process_list")))
    found.pop(0, None)  # places of the list that were not filled
    return plausible(found, most)


def users(gpu: AmdGpu) -> list[tuple[int, str, int | None]] | None:
    """(pid, name, B or None) of the processes that use it now; None where the driver does not say."""
    try:
        used = listed(gpu.handle, float(gpu.memory_total or MEMORY_BOUND))
    except Exception:
        return None
    return [(pid, name_of(pid), memory) for pid, memory in used.items()]


def _process(said: Any) -> tuple[int, int | None]:
    """(pid, B). Missing where the list holds handles, as that of the first packages did."""
    if not isinstance(said, dict) or not isinstance(said.get("pid"), int):
        raise Missing("the installed amdsmi is too old for it")
    memory = number((said.get("memory_usage") or {}).get("vram_mem"))
    if memory is None:
        memory = number(said.get("mem"))
    return said["pid"], None if memory is None or memory < 0 else int(memory)


def health(gpus: Sequence[AmdGpu]) -> list[Job]:
    """What is read of the health of each card, about once a second."""
    return [Counts(gpu, *one) for gpu in gpus if not gpu.part for one in COUNTS]
