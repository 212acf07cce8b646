"""Workloads recorded to their end as a user would: steps counted, stages there and summing to the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.steps import load_steps
from tests.record.running import opened, record

pytest.importorskip("torch")

SPEECH = ["size=smallest", "clips=16", "seconds=0.6", "steps=12"]
IMAGES = ["size=smallest", "model=mobilenet_v3_large", "image_size=32", "images=16", "batch_size=4",
          "steps=12"]
TRAINS = {"data", "forward", "backward", "optimizer"}
CASES = [
    ("speech", SPEECH, 12, TRAINS, "loss"),
    ("speech", [*SPEECH, "spectrograms=device"], 12, TRAINS, "loss"),
    ("image_inference", IMAGES, 12, {"data", "forward"}, "confidence"),
    # The warm-up of the server is a step too.
    ("image_inference", [*IMAGES, "mode=online", "rate=200"], 13, {"forward"}, "latency p50"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pairs", "steps", "stages", "says"), CASES)
def test_recorded(
    name: str, pairs: list[str], steps: int, stages: set[str], says: str, tmp_path: Path
) -> None:
    settings = (word for pair in (*pairs, "threads=1") for word in ("--set", pair))
    done = record(tmp_path, "--workload", name, *settings, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout.decode()
    with opened(tmp_path) as run:
        found = load_steps(run)
        assert len(found) == steps
        assert sum(found.stages.values()).tolist() == found.wall.tolist()
        usual = {stage for stage, times in found.stages.items() if (times > 0).sum() >= steps - 2}
        assert usual - {"h2d", "other"} == stages
