"""Inference answers every request once, in batches as they were asked for, and tells how long that took."""

from __future__ import annotations

import queue
import re
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiler.catalog import check, get, not_applicable
from profiler.cli import main
from workloads._common import Progress
from workloads._serving import Request, Requests, figures, told

torch = pytest.importorskip("torch")

SMALL = ("size=smallest", "model=mobilenet_v3_large", "image_size=32", "images=12", "batch_size=4",
         "threads=1")


@pytest.fixture(autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "workloads"))


def run(capsys: pytest.CaptureFixture[str], *pairs: str, ends: int = 0) -> str:
    """What a tiny run prints, after it ended well, or with another status."""
    settings = (word for pair in (*SMALL, *pairs) for word in ("--set", pair))
    assert main(["workload-run", "image_inference", *settings]) == ends, capsys.readouterr().err
    return capsys.readouterr().out


def told_each_step(out: str, what: str) -> list[tuple[int, float]]:
    return [(int(s), float(x)) for s, x in re.findall(rf"^step (\d+)/\d+ {what} (\S+)$", out, re.MULTILINE)]


def test_offline_answers_every_image(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "steps=4")  # the fourth batch is in the second epoch
    assert "16 images have their answer\n" in out
    assert re.search(r"^4 steps in \S+ s, \S+ samples/s over all of them$", out, re.MULTILINE)
    confidence = told_each_step(out, "confidence")
    assert confidence[-1][0] == 4 and confidence[-1][1] > 0
    again = run(capsys, "steps=4", "channels_last=true")
    assert told_each_step(again, "confidence")[-1] == (4, pytest.approx(confidence[-1][1], abs=2e-4))


@pytest.mark.parametrize("pairs", [[], ["workers=1", "static_shapes=true", "precision=bfloat16"]])
def test_online_answers_requests_and_tells_the_latency(
    pairs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, "mode=online", "rate=5000", "max_wait_ms=1000", "steps=3", *pairs)
    steps = told_each_step(out, "latency_ms")
    assert steps[-1][0] == 3 and min(latency for _, latency in steps) > 0
    said = re.search(r"^latency p50 (\S+) ms, p95 (\S+) ms, p99 (\S+) ms, largest (\S+) ms over 12 requests$",
                     out, re.MULTILINE)
    assert said and "4.0 requests in a batch" in out
    values = [float(x) for x in said.groups()]
    assert values == sorted(values) and values[0] > 0


def test_a_file_that_is_no_image_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jpg").write_bytes(b"no image at all")
    for pair in ("mode=offline", "mode=online"):
        argv = ["workload-run", "image_inference", f"--data={tmp_path}", "--set", "batch_size=1"]
        assert main([*argv, "--set", pair]) == 2
        assert "cannot decode the image" in capsys.readouterr().err


def test_few_latencies_have_no_percentiles() -> None:
    assert told([0.002, 0.001]) == "latency 1.0 to 2.0 ms over 2 requests"
    assert told([i / 1000 for i in range(101)]) == (
        "latency p50 50.0 ms, p95 95.0 ms, p99 99.0 ms, largest 100.0 ms over 101 requests")


def test_figures_are_those_of_the_line() -> None:
    few = figures([0.002, 0.001])
    assert (few["requests"], few["min_ms"], few["max_ms"], few["p50_ms"]) == (2, 1.0, 2.0, None)
    assert figures([i / 1000 for i in range(101)]) == {
        "requests": 101, "min_ms": 0, "p50_ms": 50, "p95_ms": pytest.approx(95), "p99_ms": pytest.approx(99),
        "max_ms": 100}


def test_a_run_that_is_stopped_keeps_its_latencies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found out goes to the probe, where there is one, also when the loop is interrupted."""
    kept: list[tuple[str, str, dict[str, Any]]] = []
    probe = SimpleNamespace(event=lambda *told: kept.append(told))
    monkeypatch.setitem(sys.modules, "_stepscope_probe", probe)

    def interrupt(self: Progress, loss: Any, samples: int | None = None) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", interrupt)
    out = run(capsys, "mode=online", "rate=5000", "max_wait_ms=1000", ends=130)
    [(kind, text, said)] = kept
    assert kind == "latency" and said["requests"] == 4 and 0 < said["min_ms"] <= said["max_ms"]
    assert f"{text}\n" in out and text.endswith("over 4 requests")


def requests(**options: int) -> Requests:
    return Requests(list(range(5)), **{"rate": 1000, "seed": 1, "threads": 0, "room": 100, **options})


def test_batches_are_full_or_have_waited() -> None:
    asked = requests()
    for index in range(5):
        asked.waiting.put(Request(time.monotonic(), partial(int, index)))
    batches = asked.batches(3, wait=1000)
    assert [request.read() for request in next(batches)] == [0, 1, 2]  # full: it does not wait
    asked.waiting.put(Request(0.0, lambda: 5))
    late = asked.batches(3, wait=0)
    assert [request.read() for request in next(late)] == [3, 4, 5]  # what is there is taken
    asked.waiting.put(Request(time.monotonic() - 1, lambda: 6))
    assert [request.read() for request in next(asked.batches(3, wait=0.5))] == [6]


def came(asked: Requests, count: int) -> Iterator[tuple[float, object]]:
    """When each came, and its input: read before the end, at which what was not read is given up."""
    with asked:
        for _ in range(count):
            request = asked.waiting.get(timeout=60)
            yield request.at, request.read()


@pytest.mark.parametrize("threads", [0, 2])
def test_requests_come_at_the_times_that_the_seed_gives(threads: int) -> None:
    first, again = ([*came(requests(threads=threads), 12)] for _ in range(2))
    assert [read for _, read in first] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    gaps, others = ([b - a for (a, _), (b, _) in zip(one, one[1:], strict=False)] for one in (first, again))
    assert min(gaps) > 0
    assert gaps == pytest.approx(others, abs=1e-6)


def test_what_finds_no_room_is_refused() -> None:
    asked = requests(rate=1_000_000, room=3)
    refused = threading.Event()

    class Full(queue.SimpleQueue[Request]):
        def qsize(self) -> int:
            if asked.refused >= 2:
                refused.set()
            return super().qsize()

    asked.waiting = Full()
    with asked:
        assert refused.wait(60)
    assert asked.waiting.qsize() == 3 and asked.refused >= 2


def test_settings_of_the_other_mode_mean_nothing() -> None:
    info = get("image_inference")
    online = {"mode": "online", "device": "cuda"}
    assert {"rate", "max_wait_ms"} <= not_applicable(info, {}).keys()
    assert not_applicable(info, online).keys().isdisjoint({"rate", "max_wait_ms"})
    assert "persistent_workers" in not_applicable(info, {**online, "workers": 2})
    assert not_applicable(info, online)["few_workers"] == "needs mode=offline"
    assert "pageable_copies" not in not_applicable(info, {**online, "pin_memory": True})
    assert check(info, {**online, "workers": 2, "few_workers": 1.0}) == {"few_workers": "needs mode=offline"}
    assert "next one" in check(info, {**online, "prefetch_to_device": True, "pin_memory": True})[
        "prefetch_to_device"]
    assert "differ in size" in check(info, {**online, "cuda_graphs": True})["cuda_graphs"]
    assert check(info, {**online, "cuda_graphs": True, "static_shapes": True}) == {}
    assert "multiple of 16" in check(info, {"model": "vit_b_16", "image_size": 50})["image_size"]
