"""Operators and modules around what happens, and behind what the device does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.trace.code.grouping import coded, extremes, summed, weighted, weighted_mean
from profiler.analysis.trace.code.modules import modules
from profiler.analysis.trace.code.owners import Owners, above, nearest, outermost
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import NONE, Trace
from tests.analysis.trace.build import taken_as_deep
from tests.traces import Timeline

# A parent comes before its child, as in every table of a trace.
TREES = st.lists(st.tuples(st.integers(NONE, 60), st.booleans()), max_size=60)


def names(trace: Trace, rows: np.ndarray) -> list[str]:
    return [trace.names[trace.host.name[r]] if r >= 0 else "" for r in rows.tolist()]


@given(TREES, st.booleans())
def test_ancestors_are_those_that_a_walk_finds(tree: list[tuple[int, bool]], deep: bool) -> None:
    parent = np.array([min(up, i - 1) for i, (up, _) in enumerate(tree)], np.int32)
    wanted = np.array([flag for _, flag in tree], bool)
    chains = []
    for i in range(len(parent)):
        chain, at = [], i
        while at != NONE:
            chain.append(at)
            at = int(parent[at])
        chains.append(chain)
    hits = [[r for r in chain if wanted[r]] for chain in chains]
    inner = [[r for r in chain[1:] if wanted[r]] for chain in chains]
    with taken_as_deep(deep):
        assert nearest(parent, wanted).tolist() == [h[0] if h else NONE for h in hits]
        assert outermost(parent, wanted).tolist() == [h[-1] if h else NONE for h in hits]
        assert above(parent, wanted).tolist() == [h[0] if h else NONE for h in inner]


def test_ancestors_in_a_tree_as_deep_as_it_has_rows() -> None:
    n = 200_000
    parent, wanted = np.arange(-1, n - 1, dtype=np.int32), np.arange(n) % 1000 == 7
    assert nearest(parent, wanted)[[6, 7, 1006, n - 1]].tolist() == [NONE, 7, 7, n - 993]
    assert outermost(parent, wanted)[[6, 7, n - 1]].tolist() == [NONE, 7, 7]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3), st.integers(0, 50)), max_size=40))
def test_groups_are_those_of_a_dictionary(rows: list[tuple[int, int, int]]) -> None:
    one, two, value = (np.array([r[k] for r in rows], np.int64) for k in range(3))
    first, code = coded([one, two])
    expected: dict[tuple[int, int], list[int]] = {}
    for a, b, v in rows:
        expected.setdefault((a, b), []).append(v)
    keys = list(zip(one[first].tolist(), two[first].tolist(), strict=True))
    assert sorted(expected) == keys
    assert summed(code, value, len(first)).tolist() == [sum(expected[k]) for k in keys]
    low, high = extremes(code, value, len(first))
    assert low.tolist() == [min(expected[k]) for k in keys]
    assert high.tolist() == [max(expected[k]) for k in keys]


def test_means_leave_out_what_is_unknown() -> None:
    values, weight = np.array([0.5, np.nan, 1.0, np.nan]), np.array([3, 5, 1, 7])
    assert weighted(np.array([0, 0, 0, 1]), values, weight, 2) == [0.625, None]
    assert weighted_mean(values, weight) == 0.625
    assert weighted_mean(values[1:2], weight[1:2]) is None


def test_an_activity_belongs_to_the_operators_around_its_launch() -> None:
    trace = (Timeline().op("aten::linear", 0, 100).op("aten::addmm", 10, 90)
             .call("cudaLaunchKernel", 20, 30, 1)
             .call("cuLaunchKernel", 22, 28, 1, driver=True).kernel("gemm", 50, 80, 1)
             .call("cuLaunchKernel", 110, 120, 2, driver=True).kernel("triton", 130, 140, 2)).trace()
    owners = Owners(Joined(trace))
    assert names(trace, owners.device_operator) == ["aten::addmm", ""]
    assert names(trace, owners.device_top) == ["aten::linear", ""]


def test_without_a_launch_the_external_id_tells_unless_it_is_the_correlation() -> None:
    trace = (Timeline().op("aten::mm", 0, 100, external=7).kernel("a", 50, 60, 900, external=7)
             .kernel("b", 60, 70, 7, external=7).kernel("c", 70, 80, 901, external=8)).trace()
    assert names(trace, Owners(Joined(trace)).device_operator) == ["aten::mm", "", ""]


def model() -> Timeline:
    """A module in a module; the backward node of its operator runs on another thread."""
    return (Timeline().python("nn.Module: Net_0", 0, 1000).python("nn.Module: Linear_3", 100, 500)
            .op("aten::relu", 110, 190, sequence=5, forward_thread=0)
            .op("aten::linear", 200, 400, sequence=5, forward_thread=0).call("cudaLaunchKernel", 250, 260, 1)
            .kernel("gemm", 300, 700, 1).call("cudaLaunchKernel", 600, 610, 2).kernel("add", 700, 750, 2)
            .op("AddmmBackward0", 2000, 2200, thread=2, sequence=5, forward_thread=1)
            .call("cudaLaunchKernel", 2050, 2060, 3, thread=2).kernel("gemm_bw", 2100, 2900, 3)
            .op("SumBackward0", 2300, 2400, thread=2, sequence=77, forward_thread=1)
            .call("cudaLaunchKernel", 2350, 2360, 4, thread=2).kernel("sum_bw", 2900, 2950, 4))


def test_modules_have_the_time_of_what_they_launch_and_of_its_backward_work() -> None:
    net, linear = modules(Owners(Joined(model().trace())))
    assert (net.path, net.depth, net.calls) == ("Net_0", 0, 1)
    assert (net.host_total_ns, net.host_self_ns) == (1000, 600)
    assert (net.device_total_ns, net.device_self_ns, net.backward_ns) == (1250, 50, 800)
    assert (linear.path, linear.name, linear.depth) == ("Net_0/Linear_3", "Linear_3", 1)
    assert (linear.device_total_ns, linear.device_self_ns, linear.backward_ns) == (1200, 1200, 800)


def test_modules_of_the_calls_that_are_looked_at() -> None:
    twice = model().python("nn.Module: Net_0", 5000, 5200).python("nn.Module: Linear_3", 5100, 5200)
    owners = Owners(Joined(twice.trace()))
    late = owners.trace.host.start >= 4000
    net, linear = sorted(modules(owners, calls=late), key=lambda m: m.depth)
    assert (net.calls, net.host_total_ns, net.host_self_ns) == (1, 200, 100)
    assert (linear.calls, linear.host_total_ns, linear.device_total_ns) == (1, 100, 1200)
    assert [m.calls for m in modules(owners)] == [2, 2]


def test_the_latest_forward_operator_of_a_number_made_the_node() -> None:
    trace = model().trace()
    owners = Owners(Joined(trace))
    nodes = np.flatnonzero(owners.backward)
    assert names(trace, owners.forward[nodes]) == ["aten::linear", ""]


def test_modules_of_a_trace_without_stacks_are_none() -> None:
    assert modules(Owners(Joined(Timeline().op("aten::mm", 0, 10).trace()))) == ()


def test_paths_of_very_deep_modules_stay_short() -> None:
    timeline = Timeline()
    for i in range(1500):
        timeline.python(f"nn.Module: Deep_{i}", i, 10_000 - i)
    found = modules(Owners(Joined(timeline.trace())))
    assert len(found) == 1500
    assert max(len(m.path) for m in found) < 2100
