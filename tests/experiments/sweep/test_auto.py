from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.cli._common import plain
from profiler.errors import TargetError
from profiler.experiments.statistics import ENOUGH, IMPROVEMENT, REGRESSION
from profiler.experiments.sweep.auto import FAILS, NO_FASTER, Search
from profiler.experiments.sweep.journal import Journal
from profiler.experiments.sweep.knobs import Seen, knobs, look, start
from profiler.experiments.sweep.measure import MEMORY
from profiler.experiments.sweep.subject import Subject, of_command, of_workload
from tests.experiments.sweep.stand_in import GOOD, Answer, Taker, bench
from tests.runs import CPU_STAGES_MS, make_run

LOADER = {"num_workers": 0, "prefetch_factor": None, "pin_memory": False, "persistent_workers": False}
STARVED = Seen("input_bound", cores=2, loader=LOADER, wanted={"num_workers": 2})
FULL = replace(STARVED, verdict="compute_bound", wanted={})


def script(*extra: str, keys: tuple[str, ...] = ()) -> Subject:
    import sys

    return of_command((sys.executable, "train.py", *extra), keys, Path())


def search(folder: Path, subject: Subject, answer: Callable[[Mapping[str, Any], int], Answer],
           *seen: Seen | TargetError, axes: Mapping[str, Any] | None = None,
           journal: Journal | None = None) -> tuple[Search, Taker]:
    told = iter(seen)
    taker = Taker(answer)
    place = bench(folder, taker, journal=journal)

    def look_at(point: Mapping[str, Any], name: str) -> Seen:
        value = next(told, FULL)
        if isinstance(value, TargetError):
            raise value
        return value

    found = Search(subject, place, place, look_at, dict(axes or {}))
    found.run()
    return found, taker


def queue(point: Mapping[str, Any], number: int) -> float:
    """A loader of 20 ms beside 5 ms of work: workers share it, four are enough."""
    workers = point.get("num_workers", point.get("workers", 0))
    return 8e3 / (max(5.0, 20.0 / workers) if workers else 25.0) * (1 + 0.001 * number)


def test_it_begins_with_the_remedy_and_climbs_while_that_helps(tmp_path: Path) -> None:
    found, _ = search(tmp_path, script(), queue, STARVED)
    tried = [(change.key, change.after, change.outcome) for change in found.changes]
    assert tried[:2] == [("num_workers", 2, IMPROVEMENT), ("num_workers", 4, IMPROVEMENT)]
    assert found.point["num_workers"] == 4
    assert ("prefetch_factor", 4, NO_FASTER) in tried
    told = found.to_json()
    assert told["best"]["gain"]["median"] == pytest.approx(25 / 5, rel=0.01)
    assert "num_workers=4" in told["best"]["in_code"] and told["start"]["num_workers"] == 0


def test_it_stops_when_nothing_improves_by_two_percent(tmp_path: Path) -> None:
    found, taker = search(tmp_path, script(), lambda point, number: 100.0 + point.get("num_workers", 0) / 4,
                          STARVED)
    assert not any(change.kept for change in found.changes) and found.gain is None
    assert found.point == found.begun and found.to_json()["best"]["gain"] is None
    assert len(found.seen) == 1 and len(taker.order) == 2 * len(found.changes)


def test_a_change_that_is_clearly_worse_costs_one_pair(tmp_path: Path) -> None:
    found, taker = search(tmp_path, script(), lambda point, number: 100.0 / (1 + point["num_workers"]),
                          STARVED)
    assert found.changes[0].outcome == REGRESSION
    assert len([p for p in taker.order if p["num_workers"] == 2]) == 1


def test_noise_is_not_taken_for_an_improvement(tmp_path: Path) -> None:
    """Of 200 changes that do nothing, on a machine whose runs differ by 10 %."""
    chance = random.Random(1)
    kept = 0
    for _ in range(200):
        place = bench(tmp_path, Taker(lambda point, number: chance.gauss(100.0, 10.0)), ENOUGH)
        found = Search(script("{a}", keys=("a",)), place, place, lambda point, name: replace(FULL, loader={}),
                       {"a": ("1", "2")})
        found.run()
        kept += found.changes[0].kept
    assert kept <= 8


def test_pairs_alternate(tmp_path: Path) -> None:
    _, taker = search(tmp_path, script(), queue, STARVED)
    assert [point["num_workers"] for point in taker.order[:6]] == [0, 2, 2, 0, 0, 2]


def test_a_change_that_fails_is_told_and_the_search_goes_on(tmp_path: Path) -> None:
    subject = of_workload("image_classification", ["batch_size=32"], (), None, Path())

    def answer(point: Mapping[str, Any], number: int) -> Answer:
        size = point["batch_size"]
        return replace(GOOD, failure=MEMORY, why="no room") if size > 64 else 100.0 * size ** 0.5

    found, _ = search(tmp_path, subject, answer, FULL)
    tried = [(change.after, change.outcome) for change in found.changes if change.key == "batch_size"]
    assert tried[:2] == [(64, IMPROVEMENT), (128, FAILS)]
    assert found.point["batch_size"] == 64
    assert any("learning rate" in note for note in found.to_json()["notes"])


def test_placeholders_are_turned_through_the_values_given(tmp_path: Path) -> None:
    subject = script("{batch}", keys=("batch",))
    found, _ = search(tmp_path, subject, lambda point, number: float(point["batch"]) ** 0.5, FULL,
                      axes={"batch": ("16", "32", "64")})
    assert found.begun["batch"] == "16" and found.point["batch"] == "64"
    assert found.to_json()["best"]["command"].endswith("train.py 64")


def test_it_diagnoses_again_after_an_improvement_and_turns_what_is_named_then(tmp_path: Path) -> None:
    subject = of_workload("input_starved", [], (), None, Path())

    def answer(point: Mapping[str, Any], number: int) -> float:
        return queue(point, number) * (1.1 if point["batch_size"] == 16 else 1.0)

    found, _ = search(tmp_path, subject, answer, STARVED, FULL)
    assert [seen.verdict for seen in found.seen][:2] == ["input_bound", "compute_bound"]
    assert found.point["workers"] == 4 and found.point["batch_size"] == 16
    assert found.gain and found.gain.median == pytest.approx(5.5, rel=0.01)  # measured, end against start


def test_interrupt_keeps_what_was_found_and_resume_repeats_no_run(tmp_path: Path) -> None:
    journal = Journal()

    def stopping(point: Mapping[str, Any], number: int) -> Answer:
        return KeyboardInterrupt() if len(journal.every()) == 8 else queue(point, number)

    found, _ = search(tmp_path, script(), stopping, STARVED, journal=journal)
    assert found.interrupted and found.point["num_workers"] == 2
    again, taker = search(tmp_path, script(), queue, STARVED, journal=journal)
    whole, every = search(tmp_path, script(), queue, STARVED)
    assert again.point == whole.point and not again.interrupted
    assert len(taker.order) == len(every.order) - 8


def test_a_diagnosis_that_fails_later_loses_nothing(tmp_path: Path) -> None:
    found, _ = search(tmp_path, script(), queue, STARVED, TargetError("it broke"))
    told = found.to_json()
    assert told["best"]["label"] == "num_workers=4" and told["best"]["gain"]["median"] > 4
    assert "Ended early: it broke" in told["notes"]
    with pytest.raises(TargetError, match="it broke"):
        search(tmp_path, script(), queue, TargetError("it broke"))


def test_a_value_that_was_worse_ends_its_direction_later_too(tmp_path: Path) -> None:
    def answer(point: Mapping[str, Any], number: int) -> float:
        return queue(point, number) * (0.4 if point["prefetch_factor"] == 4 else 1.0)

    found, _ = search(tmp_path, script(), answer, STARVED, STARVED, STARVED)
    assert 8 not in [change.after for change in found.changes if change.key == "prefetch_factor"]


def test_what_a_verdict_asks_for() -> None:
    subject = of_workload("image_classification", [], (), None, Path())
    on_gpu = replace(STARVED, on_device=True, epochs=1)
    point = start(subject, on_gpu, {})

    def turned(seen: Seen) -> list[str]:
        return [knob.key for knob in knobs(subject, seen, point, {})]

    assert turned(on_gpu) == ["workers", "prefetch_factor", "persistent_workers", "pin_memory"]
    assert turned(STARVED) == ["workers", "prefetch_factor"]
    assert turned(FULL) == ["batch_size"]
    assert turned(replace(FULL, also=("input_bound",))) == ["workers", "prefetch_factor", "batch_size"]
    assert knobs(subject, on_gpu, point, {})[0].values == (0, 1, 2, 4, 8)
    assert turned(replace(FULL, verdict="unknown")) == ["workers", "prefetch_factor", "batch_size"]


def test_looks_at_a_recording(tmp_path: Path) -> None:
    seen = look(make_run(tmp_path / "a.stepscope", stages=CPU_STAGES_MS), 60)
    assert seen.verdict == "compute_bound" and seen.cores == 8
    assert start(script(), seen, {}) == {"num_workers": 0, "prefetch_factor": 2, "persistent_workers": False,
                                         "pin_memory": False}


@pytest.mark.parametrize("wrong", [{"also": 3}, {"also": [3]}, {"cores": "x"}, {"loader": []}, {"other": 1}])
def test_a_note_that_is_no_diagnosis(wrong: dict[str, Any]) -> None:
    told = json.loads(json.dumps(plain(Seen("input_bound", ("host_bound",), "why", cores=2))))
    assert Seen.from_json(told).also == ("host_bound",)
    with pytest.raises((TypeError, ValueError)):
        Seen.from_json({**told, **wrong})
