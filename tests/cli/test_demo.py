from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import _experiment, _tour, demo, main
from profiler.experiments.arm import Arm
from profiler.experiments.plan import Plan
from profiler.experiments.result import Pair, Result
from profiler.experiments.statistics import IMPROVEMENT
from profiler.experiments.verify import Listener
from profiler.paths import own_command
from profiler.run.reader import Run
from tests.record.running import environment
from tests.runs import make_run

NUMBER = re.compile(r"[−-]?\d+(?:\u00a0\d{3})*(?:\.\d+)?")


def stored_numbers(path: Path) -> list[float]:
    """Every number in the run's results and facts, also those inside texts."""
    with Run.open(path) as run:
        told = [run.results("diagnosis"), run.results("experiment"), run.meta.get("workload")]

    def walk(value: Any) -> Iterator[float]:
        if isinstance(value, dict):
            for item in value.values():
                yield from walk(item)
        elif isinstance(value, list):
            for item in value:
                yield from walk(item)
        elif isinstance(value, str):
            yield from map(number, NUMBER.findall(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)

    return list(walk(told))


def number(text: str) -> float:
    return float(text.replace("\u00a0", "").replace("−", "-"))


def check_figures(out: str, path: Path) -> None:
    """Each printed number is a stored one, rounded to what is printed."""
    known = stored_numbers(path)
    body = re.sub(r"^(\[\d/4\]|Run: |Report: ).*$", "", out, flags=re.MULTILINE)
    printed = NUMBER.findall(body)
    assert len(printed) > 20
    for text in printed:
        decimals = len(text.partition(".")[2])
        assert any(abs(value - number(text)) <= 0.5001 * 10.0 ** -decimals for value in known), text


def files(folder: Path) -> tuple[Path, Path]:
    run, = folder.glob("*.stepscope")
    page, = folder.glob("*.html")
    return run, page


def planned_record(path: Path) -> None:
    make_run(path, stages={"data": 46.0, "forward": 2.1, "backward": 3.9, "optimizer": 0.3, "other": 0.6},
             samples=8, data_cpu=5.3, host={"target.cpu": 0.3}, cores=2,
             meta={"command": [sys.executable], "cwd": str(path.parent),
                   "workload": {"name": "input_starved", "settings": {"steps": 60}}})


def planned_verify(plan: Plan, folder: Path, listener: Listener) -> Result:
    def arm(ms: float, wait: float) -> Arm:
        rest = ms - wait
        stages = {"data": wait, "h2d": 0.0, "forward": 0.4 * rest, "backward": 0.6 * rest, "optimizer": 0.0,
                  "other": 0.0}
        return Arm(ms, ms * 0.97, 58, stages, 8000 / ms, (), {}, {"step 60/60": 1.4782})

    pairs = tuple(Pair(order, arm(a, 46.11), arm(b, 3.33)) for order, a, b in (
        ("ab", 53.1, 12.9), ("ba", 54.2, 13.3), ("ab", 52.7, 12.6)))
    for k, pair in enumerate(pairs, 1):
        listener.pair(pair, k)
    return Result(plan, pairs, 36.7)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tour, "_record", planned_record)
    monkeypatch.setattr(_experiment, "verify", planned_verify)


@pytest.mark.usefixtures("quick")
def test_every_printed_figure_is_in_the_run_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--headless", "-o", str(tmp_path / "tour")]) == 0
    out = capsys.readouterr().out
    path, page = files(tmp_path / "tour")
    check_figures(out, path)
    assert "input_bound" in out and f": {IMPROVEMENT}" in out
    assert str(path) in out and str(page) in out
    assert re.findall(r"^\[(\d)/4\] \w", out, re.MULTILINE) == ["1", "2", "3", "4"]
    assert "improvement" in page.read_text("utf-8")


@pytest.mark.usefixtures("quick")
def test_nothing_is_written_over(tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["demo", "--headless", "-o", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*.stepscope"))) == len(list(tmp_path.glob("*.html"))) == 2


def test_without_torch_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    assert main(["demo", "--headless"]) == 2
    err = capsys.readouterr().err
    assert 'pip install "stepscope[workloads]"' in err and len(err.strip().splitlines()) == 1


def test_opens_the_window_where_there_is_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Window:
        @staticmethod
        def run(names: list[str], tour: bool) -> int:
            asked.append((names, tour))
            return 0

    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr(importlib, "import_module", lambda name: Window)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert demo.run(demo_args()) == 0
    assert asked == [([], True)]


def demo_args() -> Any:
    import argparse

    parser = argparse.ArgumentParser()
    demo.configure(parser)
    return parser.parse_args([])


def test_unwritable_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "--headless", "-o", str(tmp_path / "file" / "x")]) == 2
    assert "cannot be made" in capsys.readouterr().err


def headless(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(own_command("demo", "--headless", "-o", str(folder / "tour")), text=True,
                          capture_output=True, env=environment(folder, **env), timeout=300)


def test_a_workload_that_fails_is_told(tmp_path: Path) -> None:
    done = headless(tmp_path, STEPSCOPE_CACHE="/dev/null/no")
    assert done.returncode == 2
    assert done.stderr.strip().startswith("stepscope: the workload ended with status 2")


@pytest.mark.slow
def test_the_tour_itself(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = str(tmp_path_factory.getbasetemp() / "workloads")
    done = headless(tmp_path, STEPSCOPE_CACHE=cache)
    assert done.returncode == 0, done.stderr
    assert "(input_bound)" in done.stdout
    path, page = files(tmp_path / "tour")
    check_figures(done.stdout, path)
    with Run.open(path) as run:
        told, = run.results("experiment")
        verdict, = run.results("diagnosis")
    assert verdict["verdict"] == "input_bound"
    assert told["outcome"] == IMPROVEMENT, json.dumps(told["pairs"])
    assert told["loss"]["state"] == "agrees"
    assert page.stat().st_size > 20_000
    assert not list((tmp_path / "tmp").glob("stepscope*"))  # torch leaves folders of its own
