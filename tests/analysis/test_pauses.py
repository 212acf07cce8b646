"""What long steps have in common."""

import numpy as np
import pytest

from profiler.analysis.facts import gather
from profiler.analysis.pauses import cause_of, spent
from profiler.analysis.steps import training_process
from profiler.run.reader import Run
from tests.runs import CPU_STAGES_MS, MS, START_NS, make_run

STALL_MS = 400.0
USUAL_MS = sum(CPU_STAGES_MS.values())


def begin(k, every=10):
    """When step k begins in a run whose every tenth step stalls."""
    return START_NS + 500 * MS + round((k * USUAL_MS + k // every * STALL_MS) * MS)


def facts_of(path, pause, steps=100):
    """`pause(k)`: (cause, ms, further data) of a pause in the stalled step k, or None."""
    def events(writer, start):
        for k in range(9, steps, 10):
            if told := pause(k):
                cause, ms, more = told
                writer.event(begin(k) + 20 * MS, "pause", "info", "a pause", process=1,
                             data={"cause": cause, "ms": ms, **more})

    other = lambda k: CPU_STAGES_MS["other"] + (STALL_MS if k % 10 == 9 else 0)  # noqa: E731
    stages = {**CPU_STAGES_MS, "other": other}
    with Run.open(make_run(path, steps=steps, stages=stages, events=events)) as run:
        return gather(run, training_process(run))


def cause(facts):
    return cause_of(facts.pauses, facts.steps.select(facts.steady.mask), facts.summary.recurring)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


@pytest.mark.parametrize("kind", ["gc", "save"])
def test_a_pause_that_fills_the_stalls_is_their_cause(path, kind):
    found = cause(facts_of(path, lambda k: (kind, 380.0, {"site": "train.py:9", "generation": 2})))
    assert found.kind == kind and found.site == "train.py:9" and found.ns == pytest.approx(380 * MS)


def test_a_pause_too_short_for_the_stall_is_not(path):
    assert cause(facts_of(path, lambda k: ("gc", 30.0, {"site": "train.py:9"}))) is None


def test_a_cause_of_few_stalls_is_not(path):
    assert cause(facts_of(path, lambda k: ("gc", 380.0, {}) if k < 30 else None)) is None


def test_a_line_seen_in_most_of_them(path):
    told = {"site": "train.py:31", "lines": ["train.py:31 log", "train.py:80 main"]}
    found = cause(facts_of(path, lambda k: ("stack", 200.0, told) if k > 30 else None))
    assert (found.kind, found.site, found.lines) == ("stack", "train.py:31", tuple(told["lines"]))


def test_a_line_that_differs_from_stall_to_stall_is_none(path):
    assert cause(facts_of(path, lambda k: ("stack", 200.0, {"site": f"train.py:{k}"}))) is None


def test_events_that_say_nothing_are_left_out(path):
    assert facts_of(path, lambda k: ("gc", None, {})).pauses == ()


def test_the_part_of_a_pause_inside_a_step(path):
    facts = facts_of(path, lambda k: ("save", 1000.0, {}) if k == 49 else None)
    ns = spent(facts.pauses, facts.steps, "save")
    assert ns[49] + ns[50:].sum() == pytest.approx(1000 * MS) and np.all(ns[:49] == 0)
    assert np.all(ns <= facts.steps.wall)
