"""Energy of planned runs: of a step, a sample, a stage, several cards, slices (N13, N14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.energy_use import Energy, energy
from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.rules.energy import measured
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.analysis.test_devices import split
from tests.runs import MS, UUID, make_run

COUNTS: Any = {"gpu.energy": lambda tick: 1e6 + 30.0 * tick}  # 300 W
OTHER = "GPU-00000000-0000-0000-0000-000000000002"
LONG = {"data": 4000.0, "forward": 4000.0, "other": 50.0}


def of(path: Path, gpu: dict[str, Any] | None, **planned: Any) -> Energy:
    """Of 40 steps of 100 ms with 8 samples, where nothing else is planned."""
    told: dict[str, Any] = {"steps": 40, "stages": {"forward": 100.0}, "samples": 8,
                            "device": {"forward": 90.0}, "properties": {"torch": {"uuid": {"0": UUID}}}}
    make_run(path, gpu=gpu, **told | planned)
    with Run.open(path) as run:
        return energy(run, [gather(run, training_process(run))])


def card(readings: dict[str, Any], held: int | None = 1, uuid: str = OTHER) -> Any:
    """Another card with readings each 100 ms, of which a process holds memory."""
    def put(writer: RunWriter, start: int) -> None:
        device = writer.add_device(uuid, 1, "NVIDIA H200")
        tracks = {writer.track(metric, device=device): value for metric, value in readings.items()}
        if held is not None:
            writer.sample(writer.track("torch.mem_reserved", device=device, process=held), start, 1e9)
        for tick in range(60):
            for track, value in tracks.items():
                writer.sample(track, start + tick * 100 * MS, value(tick) if callable(value) else value)

    return put


@pytest.mark.parametrize(("gpu", "method"), [
    (COUNTS, "energy counter"), ({"gpu.power": 300.0}, "power over time"),
    ({**COUNTS, "gpu.power": 900.0}, "energy counter"),
    ({"gpu.power_samples": 300.0}, "the driver's samples of power over time")])
def test_n14_the_counter_where_there_is_one_else_power_and_the_method_is_told(
        tmp_path: Path, gpu: dict[str, Any], method: str) -> None:
    found = of(tmp_path / "a", gpu)
    assert found.method == method and found.cards == ("GPU 0",)
    assert found.sample_j == pytest.approx(30 / 8, rel=1e-3)
    assert found.step_j == pytest.approx(30, rel=1e-3) and found.power_w == pytest.approx(300, rel=1e-3)
    assert found.run_j == pytest.approx(300 * 4.5, rel=0.01) and found.run_share == pytest.approx(1, abs=0.01)
    assert found.low == pytest.approx(30, rel=1e-3) and found.high == pytest.approx(30, rel=1e-3)
    assert "step" not in found.lacks and "sample" not in found.lacks


@pytest.mark.parametrize("counter", [lambda tick: 0.0, lambda tick: 1000.0])
def test_n14_a_counter_that_stands_still_is_unknown_and_not_zero(tmp_path: Path, counter: Any) -> None:
    alone = of(tmp_path / "a", {"gpu.energy": counter})
    assert (alone.run_j, alone.step_j, alone.sample_j, alone.power_w) == (None,) * 4
    assert alone.lacks["run"].startswith("GPU 0 told neither")
    assert of(tmp_path / "b", {"gpu.energy": counter, "gpu.power": 300.0}).method == "power over time"


def test_n14_a_counter_that_falls_begins_a_new_segment(tmp_path: Path) -> None:
    falls: Any = {"gpu.energy": lambda tick: 1e6 + 30.0 * tick if tick < 20 else 0.05 + 30.0 * (tick - 20)}
    found = of(tmp_path / "a", falls)
    assert found.step_j == pytest.approx(30, rel=1e-3) and 20 < found.steps < 40
    assert found.run_j == pytest.approx(300 * 4.4, rel=0.01) and found.run_share < 0.99


def test_n14_a_counter_that_tells_of_little_gives_way_to_power(tmp_path: Path) -> None:
    found = of(tmp_path / "a", {"gpu.energy": lambda tick: 1e6 + 30.0 * tick if tick < 15 else None,
                                "gpu.power": 300.0})
    assert found.method == "power over time" and found.run_share > 0.9
    alone = of(tmp_path / "b", {"gpu.energy": lambda tick: 1e6 + 30.0 * tick if tick < 15 else None})
    assert alone.method == "energy counter" and alone.run_share < 0.4


def test_n14_power_is_not_integrated_over_a_gap(tmp_path: Path) -> None:
    def gpu(tick: int) -> float | None:
        return None if 20 <= tick < 45 else 3000.0 if tick in (19, 45) else 300.0

    found = of(tmp_path / "a", {"gpu.power": gpu}, steps=80)
    assert found.step_j == pytest.approx(30, rel=0.15)  # over the gap it would be above 100
    assert found.run_share == pytest.approx(1 - 2.6 / 8.5, abs=0.05)


def test_n13_an_absurd_reading_does_not_count_and_is_counted(tmp_path: Path) -> None:
    found = of(tmp_path / "a", {"gpu.power": lambda tick: 3.7e6 if tick == 25 else 300.0})
    assert found.step_j == pytest.approx(30, rel=1e-3) and found.excluded == 1


def test_n14_no_energy_of_steps_shorter_than_what_a_driver_averages_over(tmp_path: Path) -> None:
    short = of(tmp_path / "a", COUNTS, steps=8)
    assert short.step_j is None and "1.0" in short.lacks["step"] and short.run_j
    pieces = of(tmp_path / "b", {"gpu.power": lambda tick: None if tick % 10 in (2, 3, 4) else 300.0})
    assert pieces.step_j is None and pieces.run_j  # stretches of 0.6 s


def test_what_a_late_reading_would_change_is_the_range(tmp_path: Path) -> None:
    swings: Any = {"gpu.power": lambda tick: 600.0 if tick < 25 else 100.0}
    found = of(tmp_path / "a", swings)
    assert found.low is not None and found.high is not None and found.step_j is not None
    assert found.low < 0.95 * found.step_j < 1.05 * found.step_j < found.high


def test_without_samples_a_step_is_told_and_a_sample_is_not(tmp_path: Path) -> None:
    found = of(tmp_path / "a", COUNTS, samples=None)
    assert found.step_j and found.sample_j is None and "samples" in found.lacks["sample"]


def test_a_loop_on_the_cpu_uses_no_gpu(tmp_path: Path) -> None:
    found = of(tmp_path / "a", COUNTS, device=None, properties={})
    assert found.cards == () and found.run_j is None and "CPU" in found.lacks["run"]


def test_a_run_without_a_loop_tells_of_all_that_was_watched(tmp_path: Path) -> None:
    found = of(tmp_path / "a", {"gpu.power": lambda tick: 300.0}, steps=0,
               events=card({"gpu.power": 100.0}, held=None), meta={"kind": "monitor"})
    assert found.cards == ("GPU 0", "GPU 1") and found.step_j is None and "watched" in found.lacks["step"]


# Several cards, and shared ones


def test_several_cards_of_a_process_are_summed_and_idle_ones_left_out(tmp_path: Path) -> None:
    def both(writer: RunWriter, start: int) -> None:
        card({"gpu.power": 100.0})(writer, start)
        card({"gpu.power": 50.0}, None, "GPU-idle")(writer, start)
        first = writer.add_device(UUID, 0, "NVIDIA H200")
        writer.sample(writer.track("torch.mem_reserved", device=first, process=1), start, 2e9)

    found = of(tmp_path / "a", COUNTS, events=both)
    assert found.power_w == pytest.approx(400, rel=1e-3)
    assert found.method == "energy counter and power over time" and found.cards == ("GPU 0", "GPU 1")


def test_a_used_card_that_tells_nothing_leaves_the_sum_unknown(tmp_path: Path) -> None:
    def both(writer: RunWriter, start: int) -> None:
        card({"gpu.util": 0.5})(writer, start)
        first = writer.add_device(UUID, 0, "NVIDIA H200")
        writer.sample(writer.track("torch.mem_reserved", device=first, process=1), start, 2e9)

    found = of(tmp_path / "a", COUNTS, events=both)
    assert found.run_j is None and found.step_j is None
    assert found.lacks["run"].startswith("GPU 1 told neither")


def test_ranks_of_a_job_count_each_card_once_and_all_samples(tmp_path: Path) -> None:
    def cards(writer: RunWriter, start: int) -> None:
        card({"gpu.power": 100.0}, 2)(writer, start)
        first = writer.add_device(UUID, 0, "NVIDIA H200")
        for process in (1, 3):  # two ranks on one card
            writer.sample(writer.track("torch.mem_reserved", device=first, process=process), start, 2e9)

    path = make_run(tmp_path / "a.stepscope", steps=40, stages={"forward": 100.0}, samples=8, ranks=3,
                    device={"forward": 90.0}, gpu=COUNTS, events=cards, lag={"data": 0.1})
    with Run.open(path) as run:
        found = measured(run, diagnose(run))
    assert found.power_w == pytest.approx(400, rel=1e-3)
    assert found.sample_j == pytest.approx(40 / 24, rel=1e-3)


def test_n09_the_energy_of_a_split_card_is_not_a_slices(tmp_path: Path) -> None:
    with Run.open(split(tmp_path / "a.stepscope", told="MIG-bbbbbbbb-2222")) as run:
        found = energy(run, [gather(run, training_process(run))])
    assert found.cards == ("GPU 1",) and found.run_j == pytest.approx(300 * 1.95, rel=0.01)
    assert found.step_j is None and "slice" in found.lacks["step"]


def test_other_programs_on_the_card_are_told(tmp_path: Path) -> None:
    assert of(tmp_path / "a", {**COUNTS, "gpu.other_processes": 1.0}).shared
    assert not of(tmp_path / "b", {**COUNTS, "gpu.other_processes": 0.0}).shared


# Stages


def long_steps(path: Path, **planned: Any) -> Energy:
    """A data wait at 100 W and a forward at 400 W, of 4 s each."""
    told: dict[str, Any] = {
        "steps": 12, "stages": LONG, "lag": {"data": 0.1, "forward": 0.1},
        "gpu": {"gpu.power": lambda tick: 100.0 if (tick / 10 - 0.5) % 8.05 < 4.0 else 400.0}}
    return of(path, **told | planned)


def test_n14_stages_that_take_long_have_energy_of_their_own(tmp_path: Path) -> None:
    found = long_steps(tmp_path / "a")
    assert found.stages["data"] == pytest.approx(400, rel=0.05)
    assert found.stages["forward"] == pytest.approx(1600, rel=0.05)
    assert set(found.stages) == {"data", "forward"} and "stages" not in found.lacks


@pytest.mark.parametrize(("planned", "why"), [
    ({"stages": {"data": 900.0, "forward": 600.0}, "steps": 20}, "takes 900 ms"),
    ({"stages": {**LONG, "other": 2000.0}}, "between them"),
    ({"lag": {}}, "not known"), ({"lag": {"data": 3000.0}}, "later one")])
def test_n14_why_stages_have_none(tmp_path: Path, planned: dict[str, Any], why: str) -> None:
    found = long_steps(tmp_path / "a", **planned)
    assert not found.stages and why in found.lacks["stages"].replace("\u00a0", " ") and found.step_j
