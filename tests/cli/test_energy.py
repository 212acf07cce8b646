"""Energy and its cost in `stepscope diagnose`, `report` and `compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.run.writer import RunWriter
from tests.rules.trace.loops import loop
from tests.runs import MS, START_NS, UUID, make_run, run_meta

COUNTS: Any = {"gpu.energy": lambda tick: 1e6 + 32.0 * tick}


def planned(path: Path, watts: float = 320.0, **more: Any) -> str:
    """100 steps of 100 ms with 8 samples, on a GPU that draws so much."""
    told: dict[str, Any] = {
        "steps": 100, "stages": {"forward": 100.0}, "samples": 8, "device": {"forward": 90.0},
        "properties": {"torch": {"uuid": {"0": UUID}}},
        "gpu": {"gpu.energy": lambda tick: 1e6 + watts * tick / 10}}
    return str(make_run(path, **told | more))


def traced(path: Path, watts: float, **more: Any) -> str:
    """The same with a trace of some of its steps."""
    def put(writer: RunWriter, start: int) -> None:
        writer.attach(start, "kineto", "trace.json", loop(wait_us=400).bytes(), process=1)

    return planned(path, watts, events=put, **more)


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main([*argv, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main([*argv]) == 0
    return capsys.readouterr().out.replace("\u00a0", " ")


def test_n14_diagnose_tells_energy_with_its_method_and_no_cost(tmp_path: Path, capsys: Any) -> None:
    run = planned(tmp_path / "a.stepscope")
    found = told(capsys, "diagnose", run)["energy"]
    assert found["method"] == "energy counter" and found["cards"] == ["GPU 0"] and found["cost"] is None
    assert found["sample_j"] == pytest.approx(4, rel=1e-3)
    assert found["step_j"] == pytest.approx(32, rel=1e-3) and found["power_w"] == pytest.approx(320, rel=1e-3)
    assert found["run_j"] == pytest.approx(3360, rel=0.01)
    assert found["stages_j"] is None and "takes 100 ms" in found["lacks"]["stages"].replace("\u00a0", " ")
    text = said(capsys, "diagnose", run)
    assert "energy: 4.00 J/sample, 32.0 J/step, 320 W in the mean" in text
    assert "3.4 kJ (933 mWh) over the whole run, by energy counter, of GPU 0" in text
    assert "cost" not in text and "EUR" not in text


@pytest.mark.parametrize(("price", "per_run"), [("0.30 EUR", "0.000280 EUR"), ("0,3", "0.000280"),
                                                ("250 円", "0.233 円")])
def test_a_price_makes_a_cost(tmp_path: Path, capsys: Any, price: str, per_run: str) -> None:
    run = planned(tmp_path / "a.stepscope")
    assert f"a kWh: {per_run} for the run" in said(capsys, "diagnose", run, "--price", price)
    cost = told(capsys, "diagnose", run, "--price", price)["energy"]["cost"]
    assert cost["run"] == pytest.approx(3360 / 3.6e6 * cost["price_per_kwh"], rel=0.01)
    assert cost["sample"] == pytest.approx(4 / 3.6e6 * cost["price_per_kwh"], rel=0.01)


@pytest.mark.parametrize("price", ["", "free", "-0.3", "nan", "inf", "1e9", "0.3 \x1b[31m", "0.3 EUR 4",
                                   "0.3 a currency of a long name"])
def test_what_is_no_price_is_refused(tmp_path: Path, capsys: Any, price: str) -> None:
    assert main(["diagnose", planned(tmp_path / "a.stepscope"), f"--price={price}"]) == 2
    assert "price" in capsys.readouterr().err


def test_n14_without_a_counter_or_power_nothing_is_claimed(tmp_path: Path, capsys: Any) -> None:
    run = planned(tmp_path / "a.stepscope", gpu={"gpu.util": 1.0})
    found = told(capsys, "diagnose", run, "--price", "0.3")["energy"]
    assert [found[name] for name in ("run_j", "step_j", "sample_j", "power_w")] == [None] * 4
    assert found["cost"]["run"] is None and found["lacks"]["run"].startswith("GPU 0 told neither")
    text = said(capsys, "diagnose", run, "--price", "0.3")
    assert "energy not known: GPU 0 told neither" in text and "cost" not in text


def test_a_run_without_a_gpu_says_nothing_of_energy(tmp_path: Path, capsys: Any) -> None:
    run = str(make_run(tmp_path / "a.stepscope"))
    assert "energy" not in said(capsys, "diagnose", run)
    assert main(["report", run]) == 0
    assert "<h2>Energy" not in (tmp_path / "a.html").read_text("utf-8")


def test_n13_readings_left_out_and_other_programs_are_noted(tmp_path: Path, capsys: Any) -> None:
    gpu = {"gpu.power": lambda tick: 3.7e6 if tick == 50 else 300.0, "gpu.other_processes": 1.0}
    found = told(capsys, "diagnose", planned(tmp_path / "a.stepscope", gpu=gpu))
    assert found["energy"]["excluded"] == 1 and found["energy"]["shared"]
    assert found["energy"]["step_j"] == pytest.approx(30, rel=1e-3)
    notes = " ".join(found["notes"])
    assert "At least 1 reading of power or energy that cannot be is left out" in notes
    assert "Other programs" in notes


@pytest.mark.parametrize(("gpu", "method"), [(COUNTS, "energy counter, of GPU 0"),
                                             ({"gpu.power": 320.0}, "power over time, of GPU 0")])
def test_n14_the_report_has_a_section_with_the_method(tmp_path: Path, gpu: Any, method: str) -> None:
    run = planned(tmp_path / "a.stepscope", gpu=gpu)
    assert main(["report", run]) == 0
    text = (tmp_path / "a.html").read_text("utf-8").replace("\u00a0", " ")
    for words in ("<h2>Energy", "4.00 J/sample", "32.0 J/step", method, "3.4 kJ", "takes 100 ms"):
        assert words in text
    assert "a kWh" not in text
    assert main(["report", run, "--price", "0.30 EUR"]) == 0
    text = (tmp_path / "a.html").read_text("utf-8").replace("\u00a0", " ")
    assert "Cost at 0.3 EUR a kWh, of the GPUs alone" in text and "0.000280 EUR for the run" in text


def test_compare_tells_the_ratio_of_energy_of_a_step(tmp_path: Path, capsys: Any) -> None:
    a, b = traced(tmp_path / "a.stepscope", 300), traced(tmp_path / "b.stepscope", 200)
    found = told(capsys, "compare", a, b)["energy"]
    assert found["ratio"] == pytest.approx(1.5, rel=1e-3)
    low, high = found["interval"]
    assert 1.49 < low <= found["ratio"] <= high < 1.51
    text = said(capsys, "compare", a, b)
    assert "Energy: A 30.0 J/step by energy counter, B 20.0 J/step by energy counter; A over B 1.50 ×" in text
    assert "no difference shown" in said(capsys, "compare", a, a)


def test_compare_of_short_runs_gives_no_interval(tmp_path: Path, capsys: Any) -> None:
    a, b = (traced(tmp_path / f"{watts}.stepscope", watts, steps=30) for watts in (300, 200))
    found = told(capsys, "compare", a, b)["energy"]
    assert found["ratio"] == pytest.approx(1.5, rel=1e-3) and found["interval"] is None


def test_compare_with_a_run_of_unknown_energy_says_so(tmp_path: Path, capsys: Any) -> None:
    a = traced(tmp_path / "a.stepscope", 300)
    b = traced(tmp_path / "b.stepscope", 300, gpu={"gpu.util": 1.0})
    found = told(capsys, "compare", a, b)["energy"]
    assert found["ratio"] is None and found["b"]["step_j"] is None
    assert "B not known (GPU 0 told neither" in said(capsys, "compare", a, b)
    trace = str(loop(wait_us=400).save(tmp_path / "a.json"))
    assert told(capsys, "compare", a, trace)["energy"] is None
    assert "Energy" not in said(capsys, "compare", a, trace)


def test_compare_says_what_makes_energies_hard_to_compare(tmp_path: Path, capsys: Any) -> None:
    a = traced(tmp_path / "a.stepscope", 300)
    b = traced(tmp_path / "b.stepscope", 300, gpu={"gpu.power": 300.0, "gpu.other_processes": 1.0})
    notes = told(capsys, "compare", a, b)["notes"]
    assert "Energy is by energy counter in A and by power over time in B: the two may differ by themselves" \
        in notes
    assert any(note.startswith("B: Other programs") for note in notes)


@pytest.mark.parametrize(("gpus", "told"), [
    (2, "2.0 kJ (556 mWh) over the whole run, by power over time, of GPU 0, GPU 1"),
    (8, "8.0 kJ (2.2 Wh) over the whole run, by power over time, of GPU 0 to GPU 7")])
def test_a_monitors_energy_is_that_of_all_it_watched(tmp_path: Path, capsys: Any, gpus: int,
                                                     told: str) -> None:
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, run_meta(gpu=True) | {"kind": "monitor"})
    for number in range(gpus):
        track = writer.track("gpu.power", device=writer.add_device(f"GPU-{number}", number, "NVIDIA H200"))
        for tick in range(101):
            writer.sample(track, START_NS + tick * 100 * MS, 100.0)
    writer.finish("finished", START_NS + 10_000 * MS)
    text = said(capsys, "diagnose", str(path))
    assert "energy: of a step not known: the machine was watched, no command" in text
    assert f"{told}\n" in text


def test_n14_readings_of_a_part_of_the_run_are_said_to_be_of_a_part(tmp_path: Path, capsys: Any) -> None:
    run = planned(tmp_path / "a.stepscope", gpu={"gpu.power": lambda tick: 300.0 if tick < 50 else None})
    assert " over 47 % of the run, by power over time" in said(capsys, "diagnose", run)
