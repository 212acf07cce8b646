"""Workloads recorded to their end as a user would: steps counted, stages there and summing to the step."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from profiler.analysis.steps import load_steps
from profiler.rules.verdict import diagnose
from tests.record.running import environment, opened, record

pytest.importorskip("torch")

SPEECH = ["clips=16", "seconds=0.6"]
SMALL = ["model=mobilenet_v3_large", "image_size=32", "images=16", "batch_size=4"]
TRAINS = {"data", "forward", "backward", "optimizer"}
ASKS = {"data", "forward"}
DEFAULT = [
    ("input_starved", ["latency_ms=0"], TRAINS),
    ("image_classification", ["model=mobilenet_v3_small", *SMALL[1:]], TRAINS),
    ("image_inference", [*SMALL, "mode=online", "rate=200"], ASKS),
]
REST = [
    ("language_model", [], TRAINS),
    ("speech", SPEECH, TRAINS),
    ("speech", [*SPEECH, "spectrograms=device"], TRAINS),
    ("image_inference", SMALL, ASKS),
]
STEPS = {"input_starved": 50, "language_model": 40, "speech": 12}  # until the loss has fallen


@pytest.mark.parametrize(("name", "pairs", "stages"), [
    *DEFAULT, *(pytest.param(*case, marks=pytest.mark.slow) for case in REST)])
def test_recorded(name: str, pairs: list[str], stages: set[str], tmp_path: Path) -> None:
    steps = STEPS.get(name, 10)
    changed = ("size=smallest", *pairs, f"steps={steps}", "threads=1")
    settings = (word for pair in changed for word in ("--set", pair))
    cache = environment(tmp_path, STEPSCOPE_CACHE=os.environ["STEPSCOPE_CACHE"])
    done = record(tmp_path, "--workload", name, *settings, timeout=120, env=cache)
    assert done.returncode == 0, done.stderr
    told = [float(number) for number in re.findall(r" (?:loss|confidence|latency_ms) (\S+)",
                                                   done.stdout.decode())]
    assert min(told) > 0 and (stages == ASKS or told[-1] < told[0]), done.stdout
    with opened(tmp_path) as run:
        found = load_steps(run)
        assert len(found) == steps
        assert sum(found.stages.values()).tolist() == found.wall.tolist()
        usual = {stage for stage, times in found.stages.items() if (times > 0).sum() >= steps - 2}
        assert usual - {"h2d", "other"} == stages
        if "mode=online" in pairs:  # what it found out about its requests is in the diagnosis
            [kept] = [event for event in run.events() if event.kind == "latency"]
            assert kept.data["requests"] >= steps and kept.data["p99_ms"] >= kept.data["p50_ms"] > 0
            assert f"L{kept.text[1:]}" in diagnose(run).notes and kept.text in done.stdout.decode()
