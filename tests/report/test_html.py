from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from app.tokens import DARK, LIGHT
from profiler.errors import RunError
from profiler.model import STAGES
from profiler.paths import ASSETS
from profiler.report import facts
from profiler.report.html import render, write
from profiler.run.reader import Run
from profiler.run.results import append_result
from profiler.run.writer import RunWriter
from tests.runs import STAGE_MS, START_NS, make_run, run_meta

EVIL = "<script>alert('x')</script> & \"quotes\""
GPU = {"gpu.util": 0.31, "gpu.power": 300.0, "gpu.mem_used": 7.0 * 2**30, "gpu.clock_sm": 1980.0}


class Page(HTMLParser):
    """Tags that were opened, what they refer to, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words += data


def page(path: Path) -> tuple[str, Page]:
    with Run.open(path) as run:
        text = render(run)
    return text, Page(text)


def experiment(**changes: Any) -> dict[str, Any]:
    def arm(ms: float, *marks: str) -> dict[str, Any]:
        return {"step_ms": ms, "median_ms": ms, "steady_steps": 50, "stages_ms": {}, "throughput": 1.0,
                "marks": list(marks)}

    return {
        "schema": 1, "finding": {"rule": "input_bound", "title": EVIL}, "score": "hit",
        "outcome": "improvement",
        "remedy": {"setting": "num_workers", "from": 0, "to": 8},
        "prediction": {"speedup": 1.84, "low": 1.7, "high": 2.0, "at_most": False},
        "ratio": {"median": 1.87, "low": 1.79, "high": 1.93, "pairs": 3, "coverage": 0.75},
        "pairs": [{"order": "ab", "ratio": 1.87, "counts": True, "a": arm(52.31), "b": arm(28.44)},
                  {"order": "ba", "ratio": 1.1, "counts": False, "a": arm(52.0), "b": arm(47.0, EVIL)}],
        "loss": {"state": "agrees", "at": EVIL, "a": 1.5, "b": 1.5}, "notes": [EVIL], **changes}


def test_whole_page_of_a_gpu_run(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope", gpu=GPU, host={"host.cpu": 0.3}, data_cpu=4.0,
                    device={"h2d": 2.6, "forward": 5.1, "backward": 9.9, "optimizer": 1.2}, lag={"data": 5.3})
    append_result(path, "experiment", experiment())
    text, seen = page(path)
    for words in ("Input-bound", "36.2 ms of 52.3 ms per step", "data wait", "1 224 samples/s", "hit",
                  "NVIDIA H200", "1.87 ×", "1.7 to 2.0 ×", "left out: B", "python train.py"):
        assert words.replace(" ", "\u00a0") in seen.words.replace(" ", "\u00a0"), words
    assert text.startswith("<!DOCTYPE html>") and '<meta charset="utf-8">' in text


def test_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope", gpu=GPU)
    text, seen = page(path)
    assert seen.links == []
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    outside = set(re.findall(r"https?://[^\s\"'<)]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not outside
    assert not re.findall(r"url\((?!#)", text) and "@import" not in text


def test_everything_is_escaped(tmp_path: Path) -> None:
    def told(writer: Any, start: int) -> None:
        writer.event(start, "mark", "warning", EVIL)
        writer.event(start, "field_absent", "info", EVIL)
        writer.output(start, EVIL.encode() + b"\xff\n")

    meta = {"name": EVIL, "notes": EVIL, "command": ["python", EVIL], "cwd": EVIL,
            "environment": {EVIL: EVIL}, "machine": {"hostname": EVIL, "cpu": EVIL},
            "git": {"commit": EVIL, "branch": EVIL, "dirty": True},
            "workload": {"name": EVIL, "settings": {EVIL: EVIL}}, "versions": {EVIL: EVIL},
            "overhead": {"cpu_share": 0.01, "sources": {EVIL: {"off": EVIL}}},
            "gpu": {"state": "absent", "reason": EVIL, "hint": EVIL}, "exit": {"code": 1, "signal": EVIL}}
    path = make_run(tmp_path / "run.stepscope", meta=meta, events=told, loader={"dataset": EVIL},
                    sites={"loader": [EVIL]})
    append_result(path, "experiment", experiment())
    text, seen = page(path)
    assert "<script" not in text
    assert seen.words.count("<script>alert('x')</script>") >= 15


@pytest.mark.parametrize("options", [
    {"steps": 0, "workers": None}, {"steps": 1}, {"steps": 3}, {"steps": 400}, {"samples": None},
    {"stages": {"data": 0.05, "forward": 0.02}}, {"state": "partial"},
    {"steps": 200, "stages": {**STAGE_MS, "other": lambda k: 5000.0 if k == 9 else 0.4}},
    {"gpu": {"gpu.util": None}}, {"gpu": {"gpu.util": lambda k: 0.5 if k == 3 else None}, "ranks": 2},
    {"meta": dict.fromkeys(("overhead", "machine", "versions", "workload", "exit", "gpu"))}])
def test_any_run_gives_a_valid_page(tmp_path: Path, options: dict[str, Any]) -> None:
    text, seen = page(make_run(tmp_path / "run.stepscope", **options))
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", seen.words.lower())
    assert "None" not in seen.words and "inf" not in seen.words.split()
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


def test_an_empty_run_says_so(tmp_path: Path) -> None:
    _, seen = page(make_run(tmp_path / "run.stepscope", steps=0, workers=None))
    assert "ended before anything was measured" in seen.words
    assert "Unknown" in seen.words
    assert "no step was seen" in seen.words


def test_a_command_that_failed_is_said_at_the_top(tmp_path: Path) -> None:
    failed = {"exit": {"code": 3, "signal": None, "reason": "ended"}, "overhead": {"cpu_share": 0.01}}
    _, seen = page(make_run(tmp_path / "run.stepscope", state="partial", meta=failed))
    assert "ended with status 3" in seen.words and "ended early" not in seen.words


def test_missing_gpu_has_its_reason_and_no_figure(tmp_path: Path) -> None:
    _, seen = page(make_run(tmp_path / "run.stepscope"))
    assert "no NVML library" in seen.words
    assert "GPU utilization" not in seen.words


def test_stages_are_those_of_the_run_and_sum(tmp_path: Path) -> None:
    text, _ = page(make_run(tmp_path / "run.stepscope"))
    cells = re.findall(r'<td class="number answer">([\d.]+)</td>', text)
    values = [float(value) for value in cells[:len(STAGES) + 1]]
    assert values == [36.2, 4.1, 6.0, 4.4, 1.2, 0.4, 52.3]


def test_colours_are_the_tokens_of_the_window() -> None:
    style = (ASSETS / "report" / "report.css").read_text("utf-8")
    light, dark = style.split("@media screen and (prefers-color-scheme: dark)")
    for part, tokens in ((light, LIGHT), (dark.split("* { box-sizing")[0], DARK)):
        for name, value in re.findall(r"--(\w+): (#[0-9A-Fa-f]{6});", part):
            if hasattr(tokens, name):
                assert value.upper() == getattr(tokens, name).upper(), name
        for stage, value in re.findall(r"--edge-(\w+): (#[0-9A-Fa-f]{6});", part):
            assert value.upper() == tokens.stages[stage].edge.upper()
    for stage, value in re.findall(r"\.fill-(\w+) \{ fill: (#[0-9A-Fa-f]{6});", style):
        assert value.upper() == LIGHT.stages[stage].fill.upper()


def test_written_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path / "run.stepscope")
    target = tmp_path / "out.html"
    target.write_text("before")

    def fail(self: Path, other: Path) -> None:
        raise OSError(28, "No space left on device")

    with Run.open(path) as run:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", fail)
            with pytest.raises(RunError, match="No space left"):
                write(run, target)
        assert target.read_text() == "before"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "run.stepscope"]
        write(run, target)
    assert target.read_text("utf-8").startswith("<!DOCTYPE")


def test_a_run_without_a_step_gives_its_reason_once_in_a_table(tmp_path: Path) -> None:
    """Nearly every rule and every figure of energy is missing for it: no wall of one sentence."""
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, run_meta(gpu=True))
    track = writer.track("gpu.power", device=writer.add_device("GPU-0", 0, "NVIDIA H200"))
    for tick in range(100):
        writer.sample(track, START_NS + tick * 100_000_000, 300.0)
    writer.finish("finished", START_NS + 10_000_000_000)
    words = page(path)[1].words
    assert words.count("no step was seen") <= 6
    assert "Of a sample, of a step, mean power in these steps, of stages" in words
    assert re.search(r"Memory calls, .*Copies to the device", words)


def test_a_gpu_that_is_lost_before_the_end_is_among_the_times_without_data(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, run_meta(gpu=True))
    power = writer.track("gpu.power", device=writer.add_device("GPU-0", 0, "NVIDIA H200"))
    whole, host = writer.track("gpu.util", device=1), writer.track("host.cpu")
    for tick in range(120):
        t_ns = START_NS + tick * 100_000_000
        for track in (whole, host) if tick > 46 else (power, whole, host):
            writer.sample(track, t_ns, 0.5)
    writer.finish("finished", START_NS + 20_000_000_000)
    with Run.open(path) as run:
        (hole,) = facts.holes(run)
    assert hole.startswith("gpu.power: none after ")
    assert hole.replace("\u00a0", " ").endswith("the last 7.3 s")
