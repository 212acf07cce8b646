"""What NVML and GPM say while the GPU does known work, and at which rate the recorder gets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from kit import Check

from profiler.metrics import METRICS
from profiler.run.reader import Run

LOAD = Path(__file__).with_name("gpu_load.py")
OF_THE_DEVICE = [name for name in METRICS if name.startswith("gpu.") and not name.startswith("gpu.process_")]
# Per cent (PCIe: MiB/s) that known work must reach at least, or stay below.
LEAST = {("matmul", "sm"): 80, ("matmul", "tensor"): 40, ("copy", "dram"): 50,
         ("transfer", "pcie_to_gpu"): 3000}
MOST = {("idle", "sm"): 5, ("copy", "tensor"): 2, ("transfer", "tensor"): 2}


def check_telemetry(check: Check) -> None:
    """One recording of the known work at 10 samples a second, one at 100."""
    for rate in (10, 100):
        name = f"load at {rate} Hz"
        path, done = check.record(f"load_{rate}", "--rate", str(rate), "--", sys.executable, str(LOAD),
                                  check.device, "0.3" if check.rehearsal else "2.5")
        told = json.loads(done.stdout.strip().splitlines()[-1])
        check.figures[name] = figures = {"gpm": told}
        signals(check, name, path)
        sampling(check, name, path, rate)
        figures["util"] = busy = medians(path, "gpu.util", told["phases"], 0.5)
        figures["sm"] = sms = medians(path, "gpu.sm_active", told["phases"], 1.1)
        check.told(f"{name}: utilization", f"idle {busy['idle']}, matmul {busy['matmul']}",
                   busy["idle"] is not None and busy["idle"] < 0.2 < 0.9 < (busy["matmul"] or 0))
        if not told["absent"]:
            check.told(f"{name}: SM activity", f"idle {sms['idle']}, matmul {sms['matmul']}",
                       sms["matmul"] is not None and (sms["idle"] or 0) < 0.2 < 0.8 < sms["matmul"])
    gpm(check, told)


def gpm(check: Check, told: dict[str, Any]) -> None:
    """GPM as read by the load itself."""
    if told["absent"]:
        check.told("GPM", told["absent"], "no GPM" in told["absent"])
        return
    for bounds, word in ((LEAST, "at least"), (MOST, "at most")):
        for (phase, metric), bound in bounds.items():
            value = told["phases"][phase]["gpm"].get(metric)
            holds = value is not None and (value >= bound if word == "at least" else value <= bound)
            check.told(f"GPM: {metric} in {phase}", f"{value}, {word} {bound}", holds)


def signals(check: Check, name: str, path: Path) -> None:
    """Every metric of a GPU has values, or the reason why it has none."""
    with Run.open(path) as run:
        reasons = {str(metric): event.text for event in run.events() if event.kind == "field_absent"
                   for metric in event.data.get("metrics") or [event.data.get("metric", event.text)]}
        found: dict[str, Any] = {}
        for metric in OF_THE_DEVICE:
            values = [v for v in (run.values(track.id)[1] for track in run.find(metric)) if len(v)]
            found[metric] = [round(float(np.median(v)), 4) for v in values] or reasons.get(metric)
    check.figures.setdefault(name, {})["signals"] = found
    lacking = [metric for metric, value in found.items() if value is None]
    there = sum(isinstance(value, list) for value in found.values())
    check.told(f"{name}: metrics of the GPU", f"{there} of {len(found)}"
               + (f"; neither value nor reason: {', '.join(lacking)}" if lacking else ""), not lacking)


def sampling(check: Check, name: str, path: Path, rate: int) -> None:
    """The asked rate is reached, nothing missed, at which cost."""
    with Run.open(path) as run:
        overhead = run.meta["overhead"]
        times = [run.values(track.id)[0] for track in run.find("gpu.util")]
    check.figures[name]["overhead"] = overhead
    fast = overhead["sources"].get("nvml") or {}
    reached = fast.get("rate_hz") or 0
    gaps = [float(np.diff(t).max()) / 1e6 for t in times if len(t) > 1]
    check.told(f"{name}: sampling", f"{reached:.1f} Hz reached, {fast.get('missed')} missed, longest gap "
               f"{max(gaps, default=0):.0f} ms, CPU of the recorder {overhead['cpu_share']:.1%}",
               reached >= 0.95 * rate and max(gaps, default=1e9) < 10e3 / rate)


def medians(path: Path, metric: str, phases: dict[str, Any], skip_s: float) -> dict[str, float | None]:
    """Median in each phase, without its first `skip_s`: a value is an average over the time before it."""
    out: dict[str, float | None] = {}
    with Run.open(path) as run:
        for phase, told in phases.items():
            t0, t1 = round(1e9 * (told["t0"] + skip_s)), round(1e9 * told["t1"])
            values = [run.values(track.id, t0, t1)[1] for track in run.find(metric)]
            values = [v for v in values if len(v)]
            out[phase] = float(np.median(np.concatenate(values))) if values else None
    return out
