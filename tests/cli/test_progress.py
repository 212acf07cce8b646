"""After an improvement milliseconds and throughput show it, also where the share of the wait stays high."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.paths import own_command
from tests.experiments.spooling import recorded
from tests.record.running import environment
from tests.runs import make_run

# 3 ms for each of 16 samples, made by the loop itself, then by two workers side by side.
LIGHT_MS = {"forward": 1.0, "backward": 2.0, "optimizer": 0.4, "other": 0.2}


@pytest.mark.parametrize(("workers", "wait", "said"), [
    (0, 48.0, ("48.0 ms of 51.6 ms per step wait", "data wait     48.0   93 %", "310 samples/s")),
    (2, 22.4, ("22.4 ms of 26.0 ms per step wait", "data wait     22.4   86 %", "615 samples/s"))])
def test_diagnose(workers: int, wait: float, said: tuple[str, ...], tmp_path: Path,
                  capsys: pytest.CaptureFixture[str]) -> None:
    path = make_run(tmp_path / "a.stepscope", stages={**LIGHT_MS, "data": wait}, workers=workers, samples=16,
                    steps=100, data_cpu=1.0, cores=2, host={"target.cpu": 0.2, "target.workers_cpu": 0.1})
    assert main(["diagnose", str(path)]) == 0
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert all(words in text for words in said), text
    assert "%" not in text.splitlines()[0]  # no share is the headline


def test_verify(tmp_path: Path) -> None:
    """Of 25 ms 20 were a wait, of 15 ms 10 are: the share hardly falls, the loop is 1.67 times as fast."""
    recorded(tmp_path)
    done = subprocess.run(
        own_command("verify", str(tmp_path / "run.stepscope"), "--try", "num_workers=2"), cwd=tmp_path,
        env=environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.replace("\u00a0", " ").split())
    for words in ("data wait 20.0 10.0 -10.0", "step 25.0 15.0 -10.0", "320 → 533 samples/s", "1.67"):
        assert words in text.replace("\u2212", "-"), text
