"""What is read beside the steps: sums that are set back, shares, and the batch that memory holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.headroom import capacity, headroom
from profiler.analysis.readings import Memory, _during, _grown
from profiler.rules.recording.tensor_cores import main_type
from tests.rules.recording.gpu_runs import FLOAT32, GIB, SHAPES, gpu_facts, memory
from tests.runs import CPU_STAGES_MS

SUMS = st.lists(st.integers(0, 1000), min_size=1, max_size=30)


@given(SUMS, SUMS)
def test_a_sum_that_is_set_back_goes_on_from_there(before, after):
    first, second = np.cumsum(before).astype(float), np.cumsum(after).astype(float)
    grown = _grown(np.concatenate((first, second)))
    low = (first[-1] - first[0]) + (second[-1] - second[0])
    assert low <= grown <= low + max(0.0, second[0] - first[-1]) + 1e-9


def test_growth_counts_from_the_last_word_before_the_time():
    t, sums = np.array([0, 10, 20, 30]), np.array([1.0, 2.0, 5.0, 9.0])
    assert _during(t, sums, (10, 20)) == 3 and _during(t, sums, (12, 30)) == 7
    assert _during(t, sums, (40, 50)) == 0 and _during(t, sums, (-5, 0)) == 1


def told(peak, between, reserved=0.0, total=100 * GIB, elsewhere=1.0 * GIB):
    return Memory(between, peak, reserved, None, 0, 0, None, total, 0.0, elsewhere)


@given(st.floats(0.01, 0.9), st.floats(0.02, 1.0), st.floats(1.0, 2.0), st.integers(1, 4096))
def test_the_room_grows_with_what_is_free_and_fits_what_fits(fixed, used, held, batch):
    peak = used * 99 * GIB
    found = headroom(told(peak, fixed * peak, held * peak), batch)
    assert found.low <= found.high and not found.at_most
    assert found.high >= batch - 1  # what ran fits
    needed = found.fixed + found.high * found.each
    assert needed <= capacity(told(peak, 0)) * (1 + 1e-9)
    assert needed + found.each > capacity(told(peak, 0)) * (1 - 1e-9)


def test_a_cpu_run_has_nothing_of_a_device(tmp_path):
    facts = gpu_facts(tmp_path / "a.stepscope", stages=CPU_STAGES_MS, gpu=None,
                      properties={"numerics": FLOAT32, "shapes": SHAPES})
    found = facts.readings
    assert not facts.on_device and found.memory is None and found.copies is None and found.users == ()
    assert found.shapes.distinct == 1 and found.numerics["weights"] == {"float32": 1000}


@pytest.mark.parametrize("said", [{}, {"batches": "many"}, {"batches": 0, "changes": 0, "distinct": 0,
                                                          "common_batches": 0}, [1]])
def test_properties_that_are_none_of_ours_are_left_out(tmp_path, said):
    told = {"shapes": said, "numerics": {"weights": said} if said else said}
    facts = gpu_facts(tmp_path / "a.stepscope", lag={"data": 1}, properties=told)
    assert facts.readings.shapes is None and main_type(facts.readings.numerics) is None


def test_the_device_and_the_run_share_what_is_held_elsewhere(tmp_path):
    live = {"gpu.util": 0.9, "gpu.mem_used": 50 * GIB, "gpu.mem_reserved": 1 * GIB}
    found = gpu_facts(tmp_path / "a.stepscope", torch=memory(), gpu=live).readings.memory
    assert found.elsewhere == pytest.approx(6 * GIB) and found.used == 50 * GIB
    assert capacity(found) == pytest.approx((140 - 1 - 6) * GIB)
