"""Two lists of things side by side."""

import numpy as np
import pytest

from profiler.analysis.trace.compare import aligned, changes

MS = 1_000_000


def test_per_step_and_absolute_with_new_and_vanished():
    a = [(("mm",), 10, 40 * MS), (("old",), 5, 5 * MS), (("same",), 5, 10 * MS)]
    b = [(("mm",), 40, 40 * MS), (("new",), 10, 1 * MS), (("same",), 10, 20 * MS)]
    found = {change.key[0]: change for change in changes(a, b, 5, 10)}
    assert list(found) == ["mm", "old", "new", "same"]  # by what changed most
    assert found["mm"].mean_ns("a") == 8 * MS and found["mm"].mean_ns("b") == 4 * MS
    assert found["mm"].delta_ns == -4 * MS and found["mm"].mean_count("b") == 4
    assert found["old"].b is None and found["old"].delta_ns == -1 * MS
    assert found["new"].a is None and found["new"].a is None and found["new"].mean_ns("a") == 0
    assert found["same"].delta_ns == 0 and found["same"].b.total_ns == 20 * MS


def test_absolute_where_one_has_no_steps():
    [change] = changes([(("mm",), 10, 40 * MS)], [(("mm",), 40, 30 * MS)], 5, None)
    assert not change.per_step and change.delta_ns == -10 * MS and change.mean_count("a") == 10


def test_equal_keys_of_one_trace_are_one():
    [change] = changes([(("mm",), 1, 3), (("mm",), 2, 4)], [], 1, 1)
    assert (change.a.count, change.a.total_ns) == (3, 7)


@pytest.mark.parametrize(("a", "b", "pairs"), [
    ([5, 6, 7], [6, 7, 8], [(0, None), (1, 0), (2, 1), (None, 2)]),
    ([1, 2], [11, 12, 13], [(0, 0), (1, 1), (None, 2)]), ([], [3], [(None, 0)])])
def test_steps_are_aligned_by_number_else_by_order(a, b, pairs):
    assert list(aligned(np.array(a, np.int64), np.array(b, np.int64))) == pairs
