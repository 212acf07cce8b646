"""What the checks on a GPU share: recordings, figures, and the table of what holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

import numpy as np  # noqa: E402

from profiler.analysis.steps import Steps, load_steps, training_process  # noqa: E402
from profiler.run.reader import Run  # noqa: E402

LONGEST_S = 60  # of a recording
WARM_UP = 20  # steps that are left out of the medians of short loops


class NoTimeError(Exception):
    """The time for all checks is used up."""


class Check:
    """One pass over a machine: `keep` gets what stays, `work` what goes.

    A rehearsal runs on the CPU all that can: it tests this script, and no line about a GPU counts.
    """

    def __init__(self, keep: Path, work: Path, budget_s: float, rehearsal: bool) -> None:
        self.keep, self.work, self.rehearsal = keep, work, rehearsal
        self.ends = time.monotonic() + budget_s
        self.device = "cpu" if rehearsal else "cuda:0"
        self.figures: dict[str, Any] = {}
        self.table: list[tuple[str, str, bool | None]] = []

    @property
    def left_s(self) -> float:
        return self.ends - time.monotonic()

    def told(self, what: str, value: str, holds: Any, of_gpu: bool = True) -> None:
        """A line of the table. In a rehearsal a line of a GPU neither holds nor fails."""
        self.table.append((what, value, None if of_gpu and self.rehearsal else bool(holds)))
        print("  ", what, value, flush=True)

    def write(self) -> None:
        told = {"figures": self.figures, "table": self.table, "rehearsal": self.rehearsal}
        (self.keep / "figures.json").write_text(json.dumps(told, indent=1, default=str))

    def run(self, *words: str, limit_s: float = 120, **options: Any) -> subprocess.CompletedProcess[str]:
        """A process of this Python, to its end. NoTimeError when there is no time for it."""
        limit_s = min(limit_s, self.left_s)
        if limit_s < 5:
            raise NoTimeError
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, errors="replace",
                              timeout=limit_s, **options)

    def stepscope(self, *words: str, limit_s: float = 120) -> subprocess.CompletedProcess[str]:
        return self.run("-P", str(ROOT / "stepscope.py"), *words, limit_s=limit_s)

    def record(self, name: str, *words: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
        """A recording, with these words of `stepscope record`."""
        path = self.work / f"{name}.stepscope"
        done = self.stepscope("record", "--force", "-o", str(path), "--name", name, f"--duration={LONGEST_S}",
                              *words)
        if done.returncode:
            self.told(f"{name}: records", f"exit {done.returncode}: {done.stderr[-300:]}", False, False)
            raise RuntimeError(f"no recording of {name}")
        return path, done

    def workload(self, name: str, workload: str, settings: Mapping[str, Any], *words: str) -> Path:
        """A recording of one of our workloads, on the device of this check."""
        pairs = {**settings, "device": self.device}
        sets = [word for key, value in pairs.items() for word in ("--set", f"{key}={_text(value)}")]
        return self.record(name, "--workload", workload, *sets, *words)[0]

    def diagnosis(self, path: Path) -> dict[str, Any]:
        """`stepscope diagnose --json` of a run."""
        done = self.stepscope("diagnose", str(path), "--json")
        if done.returncode:
            raise RuntimeError(f"diagnose: exit {done.returncode}: {done.stderr[-300:]}")
        return dict(json.loads(done.stdout))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def brief(told: Mapping[str, Any]) -> dict[str, Any]:
    """What of a diagnosis is worth keeping among the figures."""
    kept = ("verdict", "also", "confidence", "reason", "headline", "step_ms", "stages_ms", "device_ms",
            "lag_ms", "partition_ms", "what_if", "replay_error", "whole_run", "throughput", "notes", "live")
    return {key: told.get(key) for key in kept} | {
        "findings": [{key: f[key] for key in ("rule", "title", "cost_ms", "prediction", "remedy", "advice")}
                     for f in told["findings"]]}


def steps_of(run: Run) -> Steps:
    process = training_process(run)
    if process is None:
        raise RuntimeError("no process sent steps")
    return load_steps(run, process)


def medians(values: Mapping[str, Any]) -> dict[str, float | None]:
    """Median ms of each after the warm-up, NaN left out; None where nothing was measured."""
    out: dict[str, float | None] = {}
    for name, v in values.items():
        v = np.asarray(v, float)[WARM_UP:]
        v = v[np.isfinite(v)]
        out[name] = round(float(np.median(v)) / 1e6, 4) if len(v) else None
    return out


def own_environment(folder: Path) -> None:
    """Let workloads keep what they make in `folder`, where it stays out of the machine's way."""
    os.environ.setdefault("STEPSCOPE_CACHE", str(folder))
