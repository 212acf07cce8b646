"""What only a real GPU can show. For a machine with a CUDA GPU, torch, nvidia-ml-py, psutil and numpy.

    python tests/gpu/check.py [FOLDER]

Takes under 8 minutes. Writes all figures to FOLDER/figures.json and two small run
files beside it, and prints a short table last. Without a GPU it exits 77 and says
that nothing was tested. Exit 1 when a line of the table does not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from profiler.analysis.steps import Steps, load_steps, training_process  # noqa: E402
from profiler.run.reader import Run  # noqa: E402

BUDGET_S = 8 * 60
START = time.monotonic()
FIELDS = ("gpu.util", "gpu.mem_used", "gpu.power", "gpu.energy", "gpu.temperature", "gpu.clock_sm",
          "gpu.throttle", "gpu.pcie_rx", "gpu.pcie_tx", "gpu.processes")
figures: dict[str, Any] = {}
table: list[tuple[str, str, bool]] = []


def told(what: str, value: str, holds: bool) -> None:
    table.append((what, value, bool(holds)))


def stepscope(*args: str, limit: float = 150) -> subprocess.CompletedProcess[str]:
    left = max(10.0, min(limit, BUDGET_S - (time.monotonic() - START)))
    command = [sys.executable, "-P", str(ROOT / "stepscope.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=left)


def machine() -> None:
    """The GPU, driver and torch; exits 77 where there is none."""
    try:
        import pynvml
        import torch

        pynvml.nvmlInit()
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no CUDA device")
    except Exception as error:
        print(f"no GPU to test on, nothing was tested: {error}")
        raise SystemExit(77) from None
    figures["machine"] = {
        "gpu": torch.cuda.get_device_name(0), "driver": pynvml.nvmlSystemGetDriverVersion(),
        "torch": torch.__version__, "cuda": torch.version.cuda, "cores": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d"),
    }


def record(folder: Path, name: str, *args: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    path = folder / f"{name}.stepscope"
    done = stepscope("record", "--force", "-o", str(path), "--name", name, *args)
    told(f"{name}: records", f"exit {done.returncode}", done.returncode == 0)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return path, done


def medians(values: dict[str, np.ndarray], skip: int = 20) -> dict[str, float | None]:
    """Median ms of each, NaN left out; None where nothing was measured."""
    out: dict[str, float | None] = {}
    for name, v in values.items():
        v = np.asarray(v, float)[skip:]
        v = v[np.isfinite(v)]
        out[name] = round(float(np.median(v)) / 1e6, 4) if len(v) else None
    return out


def steps_of(run: Run) -> Steps:
    process = training_process(run)
    assert process is not None, "no process sent steps"
    return load_steps(run, process)


def signals(path: Path, name: str) -> None:
    """Every NVML field is there with values, or absent with its reason."""
    with Run.open(path) as run:
        absent = [e for e in run.events() if e.kind == "field_absent"]
        reasons = {str(e.data.get("metric", e.text)): e.text for e in absent}
        found: dict[str, Any] = {}
        for metric in FIELDS:
            values = [run.values(t.id)[1] for t in run.find(metric)]
            values = [v for v in values if len(v)]
            found[metric] = [round(float(np.median(v)), 4) for v in values] or reasons.get(metric)
        figures[name]["signals"] = found
        there = sum(isinstance(v, list) for v in found.values())
        told(f"{name}: NVML fields", f"{there} of {len(FIELDS)}", all(v is not None for v in found.values()))
        figures[name]["overhead"] = run.meta.get("overhead")


def stages(path: Path, name: str) -> Steps:
    with Run.open(path) as run:
        steps = steps_of(run)
    figures[name] = {"steps": int(steps.counted.sum()), "host_ms": medians(steps.stages),
                     "device_ms": medians(steps.device), "lag_ms": medians(steps.lag)}
    wall = np.asarray(steps.t1_ns - steps.t0_ns)
    total = sum(np.asarray(v) for v in steps.stages.values())
    told(f"{name}: stages sum to the step", f"{len(wall)} steps", bool((wall == total).all()))
    measured = [k for k, v in figures[name]["device_ms"].items() if v is not None]
    told(f"{name}: device times", ", ".join(measured) or "none", "forward" in measured)
    lag = figures[name]["lag_ms"].get("data")
    told(f"{name}: device lag", f"{lag} ms", lag is not None)
    return steps


def diagnosis(path: Path, name: str, wanted: set[str] | None = None) -> None:
    done = stepscope("diagnose", str(path), "--json")
    said = json.loads(done.stdout) if done.returncode == 0 else {"verdict": done.stderr}
    figures[name]["diagnosis"] = said
    verdict = said["verdict"]
    told(f"{name}: verdict", verdict, verdict in wanted if wanted else done.returncode == 0)


def user_script(folder: Path) -> None:
    """The probe against the loop's own timers, host and device, within 5 %."""
    script = Path(__file__).with_name("user_script.py")
    path, done = record(folder, "user_script", "--", sys.executable, str(script))
    own = json.loads(done.stdout.strip().splitlines()[-1])
    stages(path, "user_script")
    signals(path, "user_script")
    seen = figures["user_script"]
    seen["own"] = own
    told("user_script: steps", f"{seen['steps']} of {own['steps']}", seen["steps"] == own["steps"])
    host = ("data", "forward", "backward", "optimizer")
    for kind, names in (("host_ms", host), ("device_ms", ("forward", "backward"))):
        for stage in names:
            a, b = seen[kind].get(stage), own[kind][stage]
            close = a is not None and abs(a - b) <= max(0.05 * b, 0.05)
            told(f"user_script: {kind[:-3]} {stage}", f"{a} ms, own timer {b:.3f} ms", close)


def workloads(folder: Path) -> None:
    sets = ("--set", "steps=80", "--set", "device=cuda:0")
    path, _ = record(folder, "input_starved", "--workload", "input_starved", *sets)
    stages(path, "input_starved")
    signals(path, "input_starved")
    diagnosis(path, "input_starved", {"input_bound"})
    done = stepscope("verify", str(path), "--pairs", "3", "--json")
    said = json.loads(done.stdout) if done.returncode == 0 else {"outcome": done.stderr[-300:]}
    figures["input_starved"]["verify"] = said
    ratio = said.get("ratio") or {}
    value = f"{ratio.get('median')} x, {said.get('outcome')}"
    told("input_starved: verify", value, ratio.get("low", 0) > 1.02)

    for name, settings in (
        ("image_classification", ("workers=8", "pin_memory=true", "precision=bfloat16", "batch_size=64")),
        ("language_model", ("precision=bfloat16",)),
    ):
        sets = [a for s in (*settings, "steps=100", "device=cuda:0") for a in ("--set", s)]
        path, _ = record(folder, name, "--workload", name, *sets, "--trace-steps", "6")
        stages(path, name)
        signals(path, name)
        diagnosis(path, name)
        with Run.open(path) as run:
            traces = [a for a in run.attachments() if a.kind == "kineto"]
            kernels = run.attachment(traces[0].id).count(b'"cat": "kernel"') if traces else 0
        told(f"{name}: trace window", f"{kernels} kernels", kernels > 0)


def benchmarks(folder: Path) -> None:
    for name, script in (("probe_cost", "probe_cost.py"), ("recorder_cost", "recorder_cost.py")):
        path = ROOT / "tests" / "bench" / script
        if time.monotonic() - START > BUDGET_S - 60 or not path.exists():
            continue
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=100)
        figures[name] = done.stdout[-3000:]
        told(name, (done.stdout.strip().splitlines() or [done.stderr[-200:]])[-1], done.returncode == 0)


def main() -> int:
    machine()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="stepscope-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("STEPSCOPE_CACHE", str(folder / "cache"))
    for part in (user_script, workloads, benchmarks):
        try:
            part(folder)
        except Exception as error:
            told(part.__name__, f"{type(error).__name__}: {error}"[:200], False)
        (folder / "figures.json").write_text(json.dumps({"figures": figures, "table": table}, indent=1))
    width = max(len(row[0]) for row in table)
    for what, value, holds in table:
        print(f"{'ok  ' if holds else 'FAIL'}  {what:<{width}}  {value}")
    print(f"{figures['machine']['gpu']}, {sum(h for *_, h in table)} of {len(table)} lines hold, "
          f"{time.monotonic() - START:.0f} s")
    return 0 if all(h for *_, h in table) else 1


if __name__ == "__main__":
    sys.exit(main())
