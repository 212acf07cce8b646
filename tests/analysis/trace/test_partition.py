"""The partition's rules, one by one, on traces small enough to check by hand."""

from __future__ import annotations

import pytest

from profiler.analysis.trace import steps
from profiler.analysis.trace.breakdown import classes
from profiler.analysis.trace.breakdown.partition import Partition, partition
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import NONE, Kind
from tests.analysis.trace.build import D, H, S, call, copy, kernel, note, op, step, trace

FETCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
PINNED = "Memcpy HtoD (Pinned -> Device)"
NODE = "autograd::engine::evaluate_function: MmBackward0"


def cut(*rows: H | D | S, device: int | None = None) -> Partition:
    """Partition of one step [0, 100) with these events."""
    j = Joined(trace([step(1, 0, 100), *rows]))
    return partition(j, steps.find(j), device)


def ns(*rows: H | D | S, device: int | None = None) -> dict[str, int]:
    """Classes of the step that are not empty."""
    p = cut(*rows, device=device)
    return {name: n for name, n in zip(p.classes, p.ns[0].tolist(), strict=True) if n}


def launched(start: int, end: int, t0: int, t1: int, correlation: int = 1, thread: int = 0) -> list[H | D]:
    """A launch call [start, end) and its kernel [t0, t1)."""
    return [call("cudaLaunchKernel", start, end, correlation, thread), kernel(t0, t1, correlation)]


def test_busy_classes_by_precedence() -> None:
    rows = [call("cudaLaunchKernel", 0, 1, 1), kernel(0, 40, 1),
            kernel(20, 70, 2, stream=20, name="ncclDevKernel_AllReduce_Sum_f32"),
            copy(60, 90, 3, stream=21), D(Kind.MEMSET, "Memset (Device)", 80, 100, 4, 0, 22)]
    p = cut(*rows)
    assert ns(*rows) == {"compute": 40, "communication_exposed": 30, "transfer_exposed": 30}
    by_kind = {kind: n.tolist() for kind, n in p.transfer_by_kind.items()}
    assert by_kind == {"h2d_pageable": [20], "memset": [10]}


def test_a_gap_is_the_hosts_then_the_launch_then_queued() -> None:
    assert ns(*launched(0, 5, 10, 30), *launched(50, 60, 75, 100, 2)) == {
        "compute": 45, "host": 5 + 20 + 10, "queued": 5 + 15}


def test_submitted_before_the_gap_is_queued() -> None:
    assert ns(*launched(0, 2, 0, 30), *launched(5, 10, 50, 100, 2)) == {"compute": 80, "queued": 20}


def test_an_activity_that_begins_before_its_call_returns_leaves_nothing_queued() -> None:
    assert ns(*launched(0, 50, 20, 100)) == {"host": 20, "compute": 80}


def test_an_activity_before_its_launch_leaves_the_gap_to_the_host() -> None:
    """Clocks of host and device disagree."""
    assert ns(*launched(30, 40, 20, 100)) == {"host": 20, "compute": 80}


def test_kernels_of_one_graph_are_queued_between_each_other() -> None:
    rows = [call("cudaGraphLaunch", 0, 10, 1), kernel(10, 20, 1), kernel(30, 40, 1), kernel(60, 100, 1)]
    assert ns(*rows) == {"host": 10, "compute": 60, "queued": 30}


@pytest.mark.parametrize(("name", "found"), [("cudaMemcpyAsync", "transfer_host"), ("hipMemcpyWithStream",
                                             "transfer_host"), ("cudaMemsetAsync", "host")])
def test_the_call_of_a_copy_is_staging_that_of_a_memset_is_the_hosts(name: str, found: str) -> None:
    kind = Kind.MEMSET if "set" in name else Kind.MEMCPY
    assert ns(call(name, 0, 40, 1), D(kind, PINNED, 50, 100, 1)) == {
        found: 40, "queued": 10, "transfer_exposed": 50}


@pytest.mark.parametrize(("row", "found"), [
    (note(FETCH, 10, 40), "input_wait"), (call("cudaMalloc", 10, 40), "allocator"),
    (call("cudaFree", 10, 40), "allocator"), (call("cudaMallocAsync", 10, 40), "allocator"),
    (call("cudaHostAlloc", 10, 40), "allocator"), (call("cudaStreamSynchronize", 10, 40), "sync"),
    (call("cudaDeviceSynchronize", 10, 40), "sync"), (call("cudaEventSynchronize", 10, 40), "sync"),
    (call("hipDeviceSynchronize", 10, 40), "sync"), (call("cudaMemcpyAsync", 10, 40, 77), "transfer_host"),
    (note("collate", 10, 40), "other:collate"), (op("aten::mm", 10, 40), "host"),
    (call("cudaEventQuery", 10, 40), "host"), (H(Kind.PYTHON, "train.py(5): main", 10, 40), "host")])
def test_before_the_launch_the_launching_thread_decides(row: H, found: str) -> None:
    wanted = {"host": 50, found: 30} if found != "host" else {"host": 80}
    assert ns(row, *launched(70, 80, 80, 100)) == {**wanted, "compute": 20}


def test_the_loader_wins_over_what_it_calls() -> None:
    inner = [call("cudaHostAlloc", 15, 20), note("decode", 20, 30), op("aten::stack", 30, 35)]
    assert ns(note(FETCH, 10, 40), *inner, *launched(40, 50, 50, 100)) == {
        "input_wait": 30, "host": 20, "compute": 50}


def test_a_copy_call_is_staging_before_its_copy_and_a_wait_after_it() -> None:
    rows = [call("cudaMemcpyAsync", 10, 60, 1), copy(30, 40, 1), *launched(60, 70, 70, 100, 2)]
    assert ns(*rows) == {"host": 10 + 10, "transfer_host": 20, "transfer_exposed": 10, "sync": 20,
                         "compute": 30}


class TestOther:
    """other:<name>: the innermost annotation without launches, or with a telling name."""

    @pytest.mark.parametrize("name", ["ProfilerStep#7", "Optimizer.step#SGD.step",
                                      "DistributedDataParallel.forward", "nccl:all_reduce", "forward",
                                      "## backward ##", "FSDP::pre_forward"])
    def test_what_frameworks_write_is_the_hosts(self, name: str) -> None:
        assert ns(note(name, 10, 40), *launched(70, 80, 80, 100)) == {"host": 80, "compute": 20}

    def test_an_annotation_with_a_launch_in_it_is_not_named(self) -> None:
        assert ns(note("my block", 10, 40), *launched(20, 25, 40, 100)) == {
            "host": 25, "queued": 15, "compute": 60}

    def test_nor_when_another_thread_launches_meanwhile(self) -> None:
        rows = [note("my block", 10, 40), call("cudaLaunchKernel", 20, 25, 5, thread=1)]
        assert ns(*rows, *launched(70, 80, 80, 100)) == {"host": 80, "compute": 20}

    @pytest.mark.parametrize("name", ["evaluate", "eval_loop", "save checkpoint", "Checkpointing",
                                      "log_metrics", "logging", "validation", "gc.collect",
                                      "garbage collection", "saveModel"])
    def test_a_telling_name_counts_though_kernels_are_launched(self, name: str) -> None:
        rows = [note(name, 0, 60), *launched(0, 5, 10, 20), *launched(50, 55, 55, 100, 2)]
        assert ns(*rows) == {f"other:{name}": 30, "host": 10, "queued": 5, "compute": 55}

    @pytest.mark.parametrize("name", ["compute_logits", "retrieval", "catalog", "invalidate", "gcn_layer"])
    def test_a_name_that_only_contains_such_letters_does_not(self, name: str) -> None:
        rows = [note(name, 0, 60), *launched(0, 5, 10, 20), *launched(50, 55, 55, 100, 2)]
        assert set(ns(*rows)) == {"host", "queued", "compute"}

    def test_the_innermost_one_names_its_time(self) -> None:
        rows = [note("evaluate", 0, 60), note("metrics", 20, 40), note("forward", 25, 30)]
        assert ns(*rows, *launched(60, 60, 60, 100)) == {
            "other:evaluate": 40, "other:metrics": 20, "compute": 40}

    def test_names_are_listed_in_order_after_the_others(self) -> None:
        p = cut(note("b", 0, 10), note("a", 10, 20), *launched(60, 60, 60, 100))
        assert p.classes == (*(c for c in classes.BASE if c != "queued:peer"), "other:a", "other:b")


class TestHandOver:
    """An autograd thread that waits for work shows what the loop's thread does."""

    def test_the_loops_thread_is_looked_at(self) -> None:
        rows = [call("cudaStreamSynchronize", 10, 40), op(NODE, 50, 70, 1),
                *launched(55, 60, 60, 100, thread=1)]
        assert ns(*rows) == {"host": 10 + 10 + 5 + 5, "sync": 30, "compute": 40}

    def test_not_while_the_thread_itself_works(self) -> None:
        rows = [call("cudaStreamSynchronize", 10, 40), op(NODE, 5, 70, 1),
                *launched(55, 60, 60, 100, thread=1)]
        assert ns(*rows) == {"host": 60, "compute": 40}

    def test_the_thread_of_another_device_hands_its_gradients_over(self) -> None:
        """Layers on two devices, with a thread of backward for each: the first allocates meanwhile."""
        rows = [op(NODE, 5, 60, 1), call("cudaMalloc", 10, 40, thread=1), op(NODE, 60, 90, 2),
                *launched(70, 80, 80, 100, thread=2)]
        assert ns(*rows) == {"host": 50, "allocator": 30, "compute": 20}

    def test_the_loops_thread_waits_for_backward(self) -> None:
        """Its next launch comes after backward: what the autograd thread does until then is the reason."""
        rows = [op(NODE, 5, 60, 1), call("cudaMalloc", 10, 40, thread=1), *launched(70, 80, 80, 100)]
        assert ns(*rows) == {"host": 50, "allocator": 30, "compute": 20}


def test_no_later_activity() -> None:
    rows = [*launched(0, 0, 0, 50), call("cudaDeviceSynchronize", 40, 60), note("save", 70, 90)]
    assert ns(*rows) == {"compute": 50, "sync": 10, "other:save": 20, "host": 20}


def test_without_a_known_launch_it_is_queued_for_the_median_latency() -> None:
    """Two known ones took 6 and 10 ns from call to start; of the gap before the unknown one 8 are queued."""
    rows = [*launched(0, 3, 6, 10), *launched(20, 25, 30, 40, 2), kernel(70, 100), note(FETCH, 45, 65)]
    assert ns(*rows) == {"host": 3 + 10 + 5 + 5, "queued": 3 + 5 + 8, "compute": 44, "input_wait": 17}


def test_an_activity_without_length_ends_a_gap() -> None:
    """Whole microseconds round short ones away."""
    rows = [*launched(0, 10, 40, 40), *launched(45, 50, 60, 100, 2)]
    assert ns(*rows) == {"host": 10 + 5 + 5, "queued": 30 + 10, "compute": 40}


class TestPeers:
    """queued:peer: submitted, and waiting for another device."""

    def rows(self, *, told: bool = True, ended: int = 68) -> list[H | D | S]:
        wait: list[H | D | S] = [call("cudaStreamWaitEvent", 12, 14, 9)] if told else []
        return [call("cudaLaunchKernel", 0, 4, 5), kernel(6, ended, 5, device=1),
                *launched(8, 10, 10, 20), *wait, *launched(15, 20, 70, 100, 2)]

    def test_a_stream_that_was_told_to_wait(self) -> None:
        assert ns(*self.rows(), device=0) == {"host": 10, "compute": 40, "queued:peer": 50}

    def test_nobody_told_it_to(self) -> None:
        assert ns(*self.rows(told=False), device=0) == {"host": 10, "compute": 40, "queued": 50}

    def test_the_other_device_was_done_before(self) -> None:
        assert ns(*self.rows(ended=19), device=0) == {"host": 10, "compute": 40, "queued": 50}

    @pytest.mark.parametrize(("stream", "device", "found"), [
        (7, 0, "queued:peer"), (20, 0, "queued"), (7, 1, "queued:peer")])
    def test_the_wait_was_of_this_stream(self, stream: int, device: int, found: str) -> None:
        """Whatever device the row names: Kineto writes 0 where it does not know it."""
        rows = [*self.rows(), S("Stream Wait Event", 12, 14, 9, stream, device)]
        assert ns(*rows, device=0) == {"host": 10, "compute": 40, found: 50}

    def test_a_copy_between_devices(self) -> None:
        rows = [call("cudaLaunchKernel", 0, 4, 5), kernel(6, 68, 5, device=1),
                call("cudaMemcpyPeerAsync", 0, 10, 2), copy(70, 100, 2, "Memcpy PtoP (Device -> Device)")]
        assert ns(*rows, device=0) == {"transfer_host": 10, "queued:peer": 60, "transfer_exposed": 30}


def test_the_part_of_the_host_between_first_and_last_launch() -> None:
    rows = [*launched(20, 30, 35, 40), *launched(60, 70, 70, 80, 2)]
    p = cut(*rows)
    assert ns(*rows) == {"host": 20 + 10 + 20 + 10 + 20, "queued": 5, "compute": 15}
    assert p.launching.tolist() == [10 + 20 + 10]
    assert p.mean_launching_ns == 40


def test_each_device_has_its_own_partition() -> None:
    rows = [call("cudaLaunchKernel", 0, 0, 1), kernel(0, 90, 1), call("cudaLaunchKernel", 0, 0, 2),
            kernel(0, 30, 2, device=1)]
    assert cut(*rows).device == 0
    assert ns(*rows) == {"compute": 90, "host": 10}
    assert ns(*rows, device=1) == {"compute": 30, "host": 70}


def test_without_an_accelerator_the_cpu_is_the_device() -> None:
    rows = [note(FETCH, 0, 20), op("aten::stack", 5, 30), op("aten::mm", 40, 60),
            op("MmBackward0", 50, 90, 1)]
    p = cut(*rows)
    assert p.device == NONE
    assert p.gaps is None
    assert ns(*rows) == {"input_wait": 20, "compute": 10 + 50, "host": 20}


def test_the_mean_is_over_counted_steps() -> None:
    rows = [r for k in range(4) for r in [step(k, 100 * k, 100 * k + 100),
                                         *launched(100 * k, 100 * k, 100 * k, 100 * k + 20 + k, k + 1)]]
    j = Joined(trace(rows))
    p = partition(j, steps.find(j))
    assert p.mean_ns["compute"] == 22
    assert p.mean_window_ns == 100


def test_gaps_tell_what_ended_them_and_why() -> None:
    p = cut(call("cudaStreamSynchronize", 10, 60), *launched(70, 80, 80, 90))
    assert p.gaps is not None
    assert p.gaps.start.tolist() == [0, 90]
    assert p.gaps.end.tolist() == [80, 100]
    assert p.gaps.next.tolist() == [0, NONE]
    assert [p.gaps.texts[code] for code in p.gaps.cause] == ["sync", "host"]


def test_numbered_annotations_do_not_make_columns_without_end() -> None:
    rows = [note(f"batch {k}", 10 * k, 10 * k + 5) for k in range(150)]
    j = Joined(trace([step(1, 0, 2000), *rows, note("long", 1600, 1900), *launched(1950, 1950, 1950, 2000)]))
    p = partition(j, steps.find(j))
    named = {c: int(n) for c, n in zip(p.classes, p.ns[0], strict=True) if c.startswith("other:")}
    assert len(named) == 101
    assert named["other:51 more names"] == 51 * 5
    assert named["other:long"] == 300
    assert sum(named.values()) == 150 * 5 + 300
