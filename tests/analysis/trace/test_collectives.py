"""Collectives of one process: what they are, how large, how fast, how much of them is exposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.ranks.collectives import Collective, bus_factor, collective, executions
from profiler.analysis.trace.ranks.communication import communication
from profiler.trace.model import NONE
from tests.reference import expected, needs_reference, traces
from tests.traces import Timeline

RING = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def told(name: str, sent: int, received: int, **more: Any) -> dict[str, Any]:
    """Arguments as newer files write them beside a kernel of NCCL, in a group of four."""
    return {"Collective name": name, "In msg nelems": sent, "Out msg nelems": received, "Group size": 4,
            "dtype": "Float", "Process Group Name": "0", **more}


@pytest.mark.parametrize(("name", "kind"), [
    (RING, Collective.ALL_REDUCE),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", Collective.SEND_RECV),
    ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", Collective.REDUCE_SCATTER),
    ("ncclKernel_Reduce_RING_LL_Sum_float", Collective.REDUCE),
    ("nccl:all_to_all", Collective.ALL_TO_ALL),
    ("nccl:_all_gather_base", Collective.ALL_GATHER),
    ("_allgather_base", Collective.ALL_GATHER),
    ("_reduce_scatter_base", Collective.REDUCE_SCATTER),
    ("alltoall_base", Collective.ALL_TO_ALL),
    ("nccl:recv 0<-1", Collective.RECV),
    ("void vllm::cross_device_reduce_1stage<float, 8>(...)", Collective.ALL_REDUCE),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", Collective.UNKNOWN),
])
def test_the_kind_of_a_collective_is_in_its_name(name: str, kind: Collective) -> None:
    assert collective(name) == kind


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert bus_factor(Collective.ALL_REDUCE, 8) == 2 * 7 / 8
    assert bus_factor(Collective.ALL_GATHER, 8) == 7 / 8
    assert bus_factor(Collective.BROADCAST, NONE) == 1
    assert bus_factor(Collective.ALL_REDUCE, NONE) is None
    assert bus_factor(Collective.UNKNOWN, 8) is None


def one(name: str, **args: Any) -> Timeline:
    """One communication kernel of 10 us."""
    return (Timeline(rank=0, world_size=4).call("cudaLaunchKernelExC", 0, 2000, 7)
            .kernel(name, 5000, 15_000, 7, stream=20, **args))


@pytest.mark.parametrize(("name", "sent", "received", "size", "bus"), [
    ("allreduce", 1000, 1000, 4000, 2 * 3 / 4),
    ("_allgather_base", 250, 1000, 4000, 3 / 4),
    ("_reduce_scatter_base", 1000, 250, 4000, 3 / 4),
    ("broadcast", 1000, 1000, 4000, 1.0),
    ("all_to_all", 1000, 900, 4000, 3 / 4),
])
def test_size_and_bandwidth_are_those_of_nccl_tests(name: str, sent: int, received: int, size: int,
                                                    bus: float) -> None:
    timeline = one("ncclDevKernel_Generic(...)", **told(name, sent, received))
    [row] = communication(Joined(timeline.trace())).kinds
    assert (row.count, row.bytes, row.ranks, row.time_ns) == (1, size, 4, 10_000)
    assert row.algorithm_gbs == pytest.approx(0.4)  # 4000 bytes in 10 us
    assert row.bus_gbs == pytest.approx(0.4 * bus)


def test_a_gathered_size_is_told_from_either_side() -> None:
    [row] = communication(Joined(one(RING, **told("_allgather_base", 250, -1)).trace())).kinds
    assert row.bytes == 4000


@pytest.mark.parametrize("count", [2**62, -7, 0, "many", None])
def test_sizes_that_make_no_sense_are_not_told(count: Any) -> None:
    [row] = communication(Joined(one(RING, **told("allreduce", count, count)).trace())).kinds
    assert row.bytes is None and row.bus_gbs is None


def test_what_is_not_told_is_none() -> None:
    found = communication(Joined(one(RING).trace()))
    [row] = found.kinds
    assert (row.collective, row.bytes, row.total_bytes, row.algorithm_gbs, row.bus_gbs) == (
        "all_reduce", None, None, None, None)
    assert row.ranks == 4  # the default group is of all ranks
    assert any("size of 1 of 1" in note for note in found.notes)


def test_shapes_of_the_call_tell_the_size_where_the_kernel_does_not() -> None:
    timeline = (Timeline(rank=0, world_size=2).op("record_param_comms", 0, 5000)
                .annotation("nccl:all_reduce", 500, 4500, dims=[[10, 100]], types=["float"])
                .call("cudaLaunchKernel", 1000, 2000, 7).kernel(RING, 6000, 8000, 7, stream=20))
    [row] = communication(Joined(timeline.trace())).kinds
    assert (row.bytes, row.collective) == (4000, "all_reduce")


def test_the_call_on_the_host_tells_what_the_kernel_does_not() -> None:
    timeline = (Timeline().op("record_param_comms", 0, 5000, **told("allreduce", 1000, 1000, Seq=5))
                .annotation("nccl:all_reduce", 500, 4500)
                .call("cudaLaunchKernel", 1000, 2000, 7).kernel(RING, 6000, 8000, 7, stream=20))
    runs = executions(Joined(timeline.trace()))
    assert (runs.bytes.tolist(), runs.sequence.tolist(), runs.ranks.tolist()) == ([4000], [5], [4])


def test_kernels_of_one_call_are_one_collective() -> None:
    timeline = (Timeline(rank=0, world_size=2)
                .annotation("nccl:all_to_all", 0, 5000, dims=[[1000]], types=["float"])
                .call("cudaLaunchKernel", 1000, 1500, 7).call("cudaLaunchKernel", 2000, 2500, 8)
                .kernel("ncclKernel_SendRecv", 6000, 8000, 7, stream=20)
                .kernel("ncclKernel_SendRecv", 8500, 9000, 8, stream=20))
    runs = executions(Joined(timeline.trace()))
    assert (runs.kind.tolist(), runs.bytes.tolist()) == ([Collective.ALL_TO_ALL], [4000])
    assert (runs.start.tolist(), runs.end.tolist()) == ([6000], [9000])


def test_exposed_is_what_no_compute_hides() -> None:
    timeline = (Timeline().call("cudaLaunchKernel", 0, 500, 7).call("cudaLaunchKernel", 600, 900, 8)
                .kernel(RING, 1000, 5000, 7, stream=20).kernel("gemm", 2000, 3500, 8)
                .kernel("gemm", 9000, 9500, 9))
    found = communication(Joined(timeline.trace()))
    assert (found.time_ns, found.exposed_ns, found.overlapped_ns) == (4000, 2500, 1500)
    assert (found.kinds[0].exposed_ns, found.kinds[0].overlapped_ns) == (2500, 1500)


def test_collectives_beside_each_other_count_once_in_the_whole() -> None:
    timeline = (Timeline().kernel(RING, 1000, 5000, 7, stream=20).kernel(RING, 3000, 6000, 8, stream=21))
    found = communication(Joined(timeline.trace()))
    assert (found.time_ns, found.kinds[0].time_ns) == (5000, 7000)


def test_windows_keep_what_was_launched_in_them() -> None:
    timeline = Timeline()
    for k in range(3):
        timeline.call("cudaLaunchKernel", 10_000 * k, 10_000 * k + 100, 7 + k)
        timeline.kernel(RING, 10_000 * k + 9_500, 10_000 * k + 10_500, 7 + k, stream=20)
    j = Joined(timeline.trace())
    assert communication(j, np.array([[10_000, 20_000]])).count == 1
    assert communication(j, np.zeros((0, 2), np.int64)).count == 0
    assert communication(j).count == 3


def test_a_trace_without_communication_has_none() -> None:
    found = communication(Joined(Timeline().kernel("gemm", 0, 10, 1).trace()))
    assert (found.count, found.time_ns, found.kinds, found.notes) == (0, 0, (), ())


@needs_reference
@pytest.mark.parametrize("name", ["v100_ddp_rank1of2.json.gz", "diff_control_a100.json.gz",
                                  "diff_test_v100.json.gz", "a100_nccl_rank0of2.json.gz"])
def test_unions_agree_with_the_independent_script(name: str) -> None:
    said = expected()[name]["reference"]
    found = communication(Joined(traces(name)[0]))
    totals = said["device_totals_us"]
    assert found.time_ns / 1e3 == pytest.approx(totals["comm_kernel_union"], abs=0.5)
    assert found.exposed_ns / 1e3 == pytest.approx(totals["comm_exposed(not under compute kernels)"], abs=0.5)
    assert found.overlapped_ns / 1e3 == pytest.approx(totals["comm_overlapped_with_compute"], abs=0.5)


@needs_reference
def test_where_the_tensorboard_plugin_differs() -> None:
    """It takes collectives from a list of names that lacks all_to_all, five of the eight here. For the three
    all_reduce both give the same bytes; its time is that of the host's annotations too."""
    trace = traces("v100_dlrm_8ranks.tar.gz")[0]
    rows = {row.collective: row for row in communication(Joined(trace)).kinds}
    said = expected()["v100_dlrm_8ranks.tar.gz"]["torch_tb_profiler_0.4.3"]["distributed"]["comm_ops"]
    [(name, calls, size, *_)] = said["data"]["worker0_0"]["rows"]
    own = rows["all_reduce"]
    assert (name, calls, size) == ("nccl:all_reduce", own.count, own.total_bytes)
    assert rows["all_to_all"].count == 5
