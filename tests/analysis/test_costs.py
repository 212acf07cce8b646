from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.costs import ON_DEVICE, ON_HOST, energy_per_sample, peak_memory
from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
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


def test_energy_by_power_is_not_compared_with_that_of_a_counter(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", steps=40, stages={"forward": 100.0}, samples=8,
                    gpu={"gpu.power": 300.0}, device={"forward": 90.0},
                    properties={"torch": {"uuid": {"0": UUID}}})
    with Run.open(path) as run:
        assert energy_per_sample(run, gather(run, training_process(run))) is None


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
