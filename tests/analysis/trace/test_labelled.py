"""Traces with exact truth: steps, windows and the partition."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.breakdown.partition import partition
from profiler.analysis.trace.joined import Joined
from tests.reference import needs_reference, traces, truth


@needs_reference
@pytest.mark.parametrize("name", sorted(truth()))
def test_labelled_traces(name: str) -> None:
    """Exact where the file has nanoseconds; whole microseconds round both ends of an event down."""
    [given] = traces(name)
    j = Joined(given)
    s = steps.find(j)
    p = partition(j, s)
    known = truth()[name]
    rows = {row["number"]: row for row in known["steps"]}
    assert s.number.tolist() == list(rows)
    assert s.number[s.counted].tolist() == known["counted_steps"]
    counted = [rows[n] for n in known["counted_steps"]]
    mean = float(np.mean([row["ns"] for row in counted]))
    allowed = 1e-9 if given.resolution_ns == 1 else 2e-4
    names = set(p.classes) | {c for row in counted for c in row["partition_ns"]}
    for each in names:
        wanted = float(np.mean([row["partition_ns"].get(each, 0) for row in counted]))
        assert abs(p.mean_ns.get(each, 0) - wanted) <= allowed * mean, each
    for kind in set(p.transfer_by_kind) | {k for row in counted for k in row["transfer_by_kind_ns"]}:
        wanted = float(np.mean([row["transfer_by_kind_ns"].get(kind, 0) for row in counted]))
        assert abs(p.transfer_by_kind[kind][p.counted].mean() - wanted) <= allowed * mean, kind


@needs_reference
@pytest.mark.parametrize("name", sorted(truth()))
def test_windows_of_labelled_traces(name: str) -> None:
    [given] = traces(name)
    j = Joined(given)
    y = steady.steady(j, steps.find(j))
    known = truth()[name]
    allowed = 1e-9 if given.resolution_ns == 1 else 2e-4
    assert y.kind == known["windows"]
    assert y.device_ns / y.host_ns == pytest.approx(known["device_over_host"], abs=1e-5 + allowed)
    assert y.step_ns / 1e6 == pytest.approx(known["step_ms"]["median"], rel=1e-6 + allowed)
    assert y.mean_ns / 1e6 == pytest.approx(known["step_ms"]["mean"], rel=1e-6 + allowed)
