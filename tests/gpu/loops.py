"""Stage times on host and device, and device lag, against loops that time themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from kit import Check, medians, steps_of

from profiler.run.reader import Run

SCRIPT = Path(__file__).with_name("user_script.py")
HOST, DEVICE = ("data", "forward", "backward", "optimizer"), ("forward", "backward", "optimizer")


def check_loops(check: Check) -> None:
    """One loop that waits for the device in each step, one that runs ahead of it."""
    for mode in ("waits", "ahead"):
        name = f"loop {mode}"
        path, done = check.record(f"loop_{mode}", "--", sys.executable, str(SCRIPT), mode, check.device)
        own = json.loads(done.stdout.strip().splitlines()[-1])
        seen = stages(check, name, path)
        seen["own"] = own
        check.told(f"{name}: steps", f"{seen['steps']}, own count {own['steps']}",
                   seen["steps"] == own["steps"], False)
        for kind, names in (("host_ms", HOST), ("device_ms", DEVICE)):
            for stage in names:
                a, b = seen[kind].get(stage), own[kind][stage]
                check.told(f"{name}: {kind[:-3]} {stage}", f"{a} ms, own timer {_ms(b)}", _close(a, b, 0.05))
        lag, own_lag = seen["lag_ms"].get("data"), own["lag_ms"]
        check.told(f"{name}: device lag", f"{lag} ms, own events {_ms(own_lag)}", _close(lag, own_lag, 0.1))
        if mode == "ahead":
            step = own["step_ms"]
            check.told("loop ahead: the host is ahead", f"lag {lag} ms of a step of {_ms(step)}",
                       lag is not None and lag > step)


def stages(check: Check, name: str, path: Path) -> dict[str, Any]:
    """Tells whether stages sum to the step and which are timed on the device; their medians."""
    with Run.open(path) as run:
        steps = steps_of(run)
    seen: dict[str, Any] = {"steps": int(steps.counted.sum()), "host_ms": medians(steps.stages),
                            "device_ms": medians(steps.device), "lag_ms": medians(steps.lag)}
    check.figures[name] = seen
    total = sum(np.asarray(v) for v in steps.stages.values())
    check.told(f"{name}: stages sum to the step", f"{len(steps)} steps", (steps.wall == total).all(), False)
    timed = [stage for stage, ms in seen["device_ms"].items() if ms is not None]
    check.told(f"{name}: stages timed on the device", ", ".join(timed) or "none", "forward" in timed)
    return seen


def _close(a: float | None, b: float | None, floor_ms: float) -> bool:
    return a is not None and b is not None and abs(a - b) <= max(0.05 * abs(b), floor_ms)


def _ms(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f} ms"
