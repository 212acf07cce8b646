"""When a verdict on Live replaces the one that is shown."""

from __future__ import annotations

import pytest

from app.live import verdict


def said(word: str) -> verdict.VerdictData:
    return verdict.VerdictData(word, verdict.verdict_title(word))


def test_a_verdict_changes_only_after_three_seconds_of_agreement() -> None:
    agreement = verdict.Agreement()
    assert agreement.feed(said("warming"), 0.0)
    assert not agreement.feed(said("input_bound"), 1.0)
    assert not agreement.feed(said("input_bound"), 3.9)
    assert agreement.feed(said("input_bound"), 4.0)
    assert agreement.age(10.0) == pytest.approx(9.0)
    assert not agreement.feed(said("host_bound"), 11.0)
    assert not agreement.feed(said("input_bound"), 12.0)  # the other one was no agreement
    assert not agreement.feed(said("host_bound"), 13.0)
    assert not agreement.feed(said("host_bound"), 15.0)
    assert agreement.shown is not None and agreement.shown.word == "input_bound"
    assert agreement.feed(said("host_bound"), 16.0)
    assert agreement.shown.word == "host_bound"


def test_nothing_waits_for_the_first_step_once_it_is_there() -> None:
    agreement = verdict.Agreement()
    agreement.feed(said("waiting"), 0.0)
    assert agreement.feed(said("input_bound"), 1.0)


def test_a_finished_run_has_its_verdict_at_once() -> None:
    agreement = verdict.Agreement()
    agreement.feed(said("input_bound"), 0.0, at_once=True)
    assert agreement.feed(said("compute_bound"), 0.1, at_once=True)
