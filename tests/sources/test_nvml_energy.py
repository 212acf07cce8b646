"""From a driver that tells energy badly to the energy of the run (N13, N14)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.analysis.energy_use import Energy, energy
from profiler.analysis.facts import gather
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import run_meta
from tests.sources.conftest import Dump, NvmlChild

Start = Callable[..., NvmlChild]
METRICS = ("gpu.energy", "gpu.power")


def of(dump: Dump, path: Path) -> Energy:
    """Of a run of nothing but what the driver told, by GPU 0."""
    samples = {metric: dump.samples(metric) for metric in METRICS}
    times = [t_ns for found in samples.values() for t_ns, _ in found]
    writer = RunWriter.create(path, run_meta(gpu=True) | {"kind": "monitor", "start_ns": min(times)})
    device = writer.add_device("GPU-1", 0, "Stand-in GPU", properties=dump.devices[0].properties)
    for metric, found in samples.items():
        track = writer.track(metric, device=device) if found else 0
        for t_ns, value in found:
            writer.sample(track, t_ns, value)
    for event in dump.events:
        writer.event(event.t_ns, event.kind, event.severity, event.text, device=device, data=event.data)
    writer.finish("finished", max(times))
    with Run.open(path) as run:
        return energy(run, [gather(run, None)])


def counting(child: NvmlChild, first_mj: int, times: int, *lines: str) -> None:
    """Ticks of 100 ms in which the counter rises by 30 J."""
    for tick in range(times):
        child.plan.set("gpus 1", f"energy_mj {first_mj + 30_000 * tick}", *lines)
        child.read()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.stepscope"


def test_n14_without_a_counter_power_is_integrated_and_no_zero_told(start_nvml: Start, path: Path) -> None:
    child = start_nvml("gpus 1", "power_mw 100000", "ret nvmlDeviceGetTotalEnergyConsumption 3")
    child.open()
    child.read(times=21)
    found = of(child.dump(), path)
    assert found.method == "power over time" and found.run_j == pytest.approx(200, rel=1e-3)


def test_n14_without_counter_and_power_nothing_is_told(start_nvml: Start, path: Path) -> None:
    child = start_nvml("gpus 1", "energy_mj 0", "power_mw 100000")
    child.open()
    child.read()
    child.plan.set("gpus 1", "energy_mj 0", "ret nvmlDeviceGetPowerUsage 3")
    child.read(times=20)
    found = of(child.dump(), path)
    assert found.run_j is None and "neither" in found.lacks["run"]


def test_n14_a_counter_set_back_is_two_segments_and_never_negative(start_nvml: Start, path: Path) -> None:
    child = start_nvml("gpus 1", "energy_mj 1000000")
    child.open()
    counting(child, 1_000_000, 11)
    counting(child, 50, 11)  # the recipe: 1000000 -> 50
    found = of(child.dump(), path)
    assert found.method == "energy counter" and found.run_j == pytest.approx(600, rel=1e-3)
    assert found.run_share == pytest.approx(20 / 21, rel=1e-3)


def test_n13_absurd_power_for_one_tick_is_in_no_energy_and_said(start_nvml: Start, path: Path) -> None:
    missing = "ret nvmlDeviceGetTotalEnergyConsumption 3"
    child = start_nvml("gpus 1", "power_mw 100000", missing)
    child.open()
    child.read(times=10)
    child.plan.set("gpus 1", "power_mw 3700000000", missing)
    child.read()
    child.plan.set("gpus 1", "power_mw 100000", missing)
    child.read(times=10)
    found = of(child.dump(), path)
    assert found.run_j == pytest.approx(200, rel=1e-3) and found.excluded == 1
