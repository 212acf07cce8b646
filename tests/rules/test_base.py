"""Findings: their order, and one cause as a recording and its trace see it."""

import pytest

from profiler.rules.base import Finding, Prediction, Remedy, order


def finding(rule, speedup=None, remedy=None, advice="", severity="warning", cost=1.0, at_most=True):
    prediction = Prediction("no_input_wait", speedup, 1.0, speedup, at_most) if speedup else None
    return Finding(rule, rule, severity, cost, remedy=remedy, advice=advice, prediction=prediction)


WORKERS = Remedy("num_workers", 0, 4)


@pytest.mark.parametrize(("one", "two"), [
    (finding("a", 1.49, WORKERS), finding("b", 1.61)),                # what can be tried before an ideal
    (finding("a", 4.0), finding("b", 1.1, WORKERS)),                  # but not before one that is far larger
    (finding("a", 1.5, WORKERS), finding("b", 1.2, WORKERS)),
    (finding("a", 1.5), finding("b", 1.2)),
    (finding("a", 1.2), finding("b", None, WORKERS)),
    (finding("a", severity="error"), finding("b", cost=9.0)),
    (finding("a", cost=2.0), finding("b")),
])
def test_findings_are_ranked_by_what_their_remedies_give(one, two):
    assert sorted([two, one], key=order) == sorted([one, two], key=order) == [one, two]


def test_a_recording_that_knows_better_keeps_its_advice():
    traced = finding("input_bound", 2.0, WORKERS)
    recorded = finding("input_bound", advice="The cores are busy: make a batch cheaper.")
    joined = recorded.beside(traced)
    assert joined.remedy is None and joined.prediction == traced.prediction
    other = Remedy("num_workers", 2, 4)
    scored = finding("input_bound", 1.5, other, at_most=False).beside(traced)
    assert scored.remedy == other and scored.prediction.speedup == 1.5
    assert finding("input_bound").beside(traced).remedy == WORKERS
