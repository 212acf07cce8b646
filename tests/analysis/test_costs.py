from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.costs import ON_DEVICE, ON_HOST, energy, energy_per_sample, peak_memory
from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.report import html
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import UUID, make_run


def test_energy_is_that_of_the_steady_steps_alone(tmp_path: Path) -> None:
    # 40 steps of 100 ms at 8 samples; the counter rises by 30 J in each 0.1 s: 300 W
    path = make_run(tmp_path / "a.stepscope", steps=40, stages={"forward": 100.0}, samples=8,
                    gpu={"gpu.energy": lambda tick: 30.0 * tick, "gpu.util": 1.0},
                    device={"forward": 90.0}, properties={"torch": {"uuid": {"0": UUID}}})
    with Run.open(path) as run:
        facts = gather(run, training_process(run))
        assert energy_per_sample(run, facts) == pytest.approx(30.0 / 8, rel=1e-3)


def _energy(path: Path, gpu: dict[str, Any], samples: int | None = 8, steps: int = 40) -> Any:
    make_run(path, steps=steps, stages={"forward": 100.0}, samples=samples, gpu=gpu,
             device={"forward": 90.0}, properties={"torch": {"uuid": {"0": UUID}}})
    with Run.open(path) as run:
        return energy(run, gather(run, training_process(run)))


COUNTS: Any = {"gpu.energy": lambda tick: 30.0 * tick}


def test_without_a_counter_power_or_samples_there_is_no_energy(tmp_path: Path) -> None:
    assert _energy(tmp_path / "a", {"gpu.util": 1.0}) is None
    assert _energy(tmp_path / "b", COUNTS, samples=None) is None


def test_n14_without_a_counter_power_is_integrated_over_real_intervals_and_said_so(tmp_path: Path) -> None:
    told = _energy(tmp_path / "a", {"gpu.power": 300.0})
    assert told == (pytest.approx(30.0 / 8, rel=1e-3), "power over time")


def test_n14_power_is_not_integrated_over_a_gap(tmp_path: Path) -> None:
    def power(tick: int) -> float | None:
        return None if 15 <= tick < 40 else 3000.0 if tick in (14, 40) else 300.0

    (joules, _), (even, _) = (_energy(tmp_path / name, {"gpu.power": planned})
                              for name, planned in (("a", power), ("b", 300.0)))
    assert joules < 2.5 * even  # over the gap it would be above 6 times


@pytest.mark.parametrize("counter", [lambda tick: 0.0, lambda tick: 1000.0])
def test_n14_a_counter_that_stands_still_is_unknown_and_not_zero(tmp_path: Path, counter: Any) -> None:
    assert _energy(tmp_path / "a", {"gpu.energy": counter}) is None
    assert _energy(tmp_path / "b", {"gpu.energy": counter, "gpu.power": 300.0})[1] == "power over time"

    counted = _energy(tmp_path / "c", COUNTS)
    assert counted[1] == "energy counter"


def test_n14_a_counter_that_falls_begins_a_new_segment(tmp_path: Path) -> None:
    falls: Any = {"gpu.energy": lambda tick: 1e6 + 30.0 * tick if tick < 20 else 0.05 + 30.0 * (tick - 20)}
    assert _energy(tmp_path / "a", falls) == (pytest.approx(30.0 / 8, rel=1e-3), "energy counter")


def test_n14_no_energy_of_steps_shorter_than_what_a_driver_averages_over(tmp_path: Path) -> None:
    assert _energy(tmp_path / "a", COUNTS, steps=6) is None
    assert _energy(tmp_path / "b", COUNTS, steps=40) is not None


def test_n14_the_report_says_that_power_was_integrated(tmp_path: Path) -> None:
    for name, gpu, words in (("a", {"gpu.power": 300.0}, "J/sample (by power over time)"),
                             ("b", COUNTS, "J/sample<")):
        path = tmp_path / f"{name}.stepscope"
        make_run(path, steps=40, stages={"forward": 100.0}, samples=8, gpu=gpu, device={"forward": 90.0},
                 properties={"torch": {"uuid": {"0": UUID}}})
        with Run.open(path) as run:
            text = html.render(run).replace("\u00a0", " ")
        assert words in text


def test_peak_is_the_allocators_and_without_one_the_hosts(tmp_path: Path) -> None:
    def allocated(writer: RunWriter, start: int) -> None:
        device = writer.add_device("GPU-1", 0, "A GPU")
        other = writer.add_device("GPU-2", 1, "Another")
        for process, where, peak in ((1, device, 2e9), (2, device, 1e9), (1, other, 2.5e9)):
            track = writer.track("torch.mem_peak", device=where, process=process)
            writer.sample(track, start, peak / 2)
            writer.sample(track, start + 10**9, peak)

    resident: Any = {"target.mem_rss": lambda tick: 5e8 if tick == 3 else 4e8}
    on_gpu = make_run(tmp_path / "a.stepscope", ranks=2, host=resident, events=allocated)
    on_host = make_run(tmp_path / "b.stepscope", host=resident)
    nothing = make_run(tmp_path / "c.stepscope")
    for path, expected in ((on_gpu, (3e9, ON_DEVICE)), (on_host, (5e8, ON_HOST)), (nothing, None)):
        with Run.open(path) as run:
            assert peak_memory(run) == expected
