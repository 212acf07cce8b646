"""The run of the mockups as a file: ResNet-50 with a starved loader on one H200; a small one without GPU.

The numbers are examples for pictures and tests, not measurements.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from profiler.run.writer import RunWriter
from tests.runs import START_NS, run_meta

MS = 1_000_000
GIB = 2**30
STAGES = {"data": 36.2, "h2d": 4.1, "forward": 6.0, "backward": 4.4, "optimizer": 1.2}
DEVICE = {"h2d": 2.6, "forward": 5.1, "backward": 9.9, "optimizer": 1.2}
LAG = {"data": 5.3, "h2d": 0.02, "forward": 0.02, "backward": 0.2, "optimizer": 5.6}
CPU_STAGES = {"data": 61.2, "forward": 9.8, "backward": 11.9, "optimizer": 1.3}
SLOW = 571  # the step with a slow read
THROTTLED = (23.4, 26.2)
GAP = (29.4, 30.1)


class Story:
    """Writes the run piece by piece, as a recorder does: `advance` to a time, in s."""

    def __init__(self, path: Path, *, gpus: int = 1, cores: int = 16, cpu_only: bool = False,
                 first_step_s: float = 3.7, steps_per_s: float | None = None) -> None:
        self.path = path
        self.random = random.Random(7)
        self.cpu_only = cpu_only
        gpus = 0 if cpu_only else gpus
        meta = run_meta(cores, 10.0, gpus > 0)
        meta["name"] = "input-starved demo" if cpu_only else "resnet50 baseline"
        meta["machine"]["memory_bytes"] = int((7.7 if cpu_only else 256) * GIB)
        meta["workload"] = {
            "name": "input_starved" if cpu_only else "image_classification",
            "settings": {"batch_size": 32 if cpu_only else 64, "workers": 0,
                         "precision": "float32" if cpu_only else "bfloat16", "steps": 2000},
        }
        meta["exit"] = None
        if cpu_only:
            meta["gpu"] = {"state": "absent", "hint": "",
                           "reason": "No NVIDIA driver on this machine: libnvidia-ml.so.1 not found"}
        self.writer = RunWriter.create(path, meta)
        loader = {"num_workers": 0, "batch_size": 32 if cpu_only else 64, "prefetch_factor": None,
                  "pin_memory": False, "persistent_workers": False, "dataset": "Story", "train": True}
        self.process = self.writer.add_process(
            4000, "target", command="python train.py", started_ns=START_NS,
            properties={"loader": loader, "sites": {"loader": ["train.py:57"]}})
        self.devices = [
            self.writer.add_device(f"GPU-{i:032d}", i, "NVIDIA H200", memory_total=int(140.4 * GIB),
                                   properties={"power_limit_w": 700})
            for i in range(gpus)
        ]
        self.cores = cores
        self.stages = CPU_STAGES if cpu_only else STAGES
        self.scale = 1.0 if steps_per_s is None else 1000 / steps_per_s / 52.3
        self.step = 0
        self.next_step = first_step_s
        self.tick = 0

    def advance(self, until: float) -> None:
        """Write all that happens before `until` seconds, and commit."""
        while self.tick / 10 <= until:
            self._sample(self.tick / 10)
            self.tick += 1
        while self._write_step(until):
            pass
        self.writer.commit()

    def finish(self, at: float, state: str = "finished", reason: str = "ended") -> Path:
        self.writer.set_meta("exit", {"code": 0, "signal": None, "reason": reason})
        self.writer.finish(state, START_NS + round(at * 1e9))
        return self.path

    def put(self, metric: str, t: float, value: float, **track: int) -> None:
        self.writer.sample(self.writer.track(metric, **track), START_NS + round(t * 1e6) * 1000, value)

    def event(self, t: float, kind: str, severity: str, text: str, **data: object) -> None:
        self.writer.event(START_NS + round(t * 1e9), kind, severity, text, data=data)

    def _noise(self, spread: float) -> float:
        return 1 + self.random.uniform(-spread, spread)

    def _write_step(self, until: float) -> bool:
        warm = 1 + max(0, 30 - self.step) / 200
        times = {s: v * self.scale * self._noise(0.06) * warm for s, v in self.stages.items()}
        if self.step == SLOW:
            times["data"] += 24
        wall = sum(times.values()) + 0.4
        end = self.next_step + wall / 1000
        if end > until:
            return False
        self.next_step = end
        put = {f"step.{name}": value * MS for name, value in times.items()}
        put["step.data_cpu"] = (0.5 if self.cpu_only else 0.9) * times["data"] * MS
        put |= {"step.wall": wall * MS, "step.index": self.step, "step.flags": 2 if self.step == 0 else 0,
                "step.samples": 32 if self.cpu_only else 64}
        if not self.cpu_only:
            put |= {f"step.device_{k}": v * MS * self._noise(0.02) for k, v in DEVICE.items()}
            put |= {f"step.lag_{k}": v * MS * self._noise(0.02) for k, v in LAG.items()}
        for metric, value in put.items():
            self.put(metric, end, round(value), process=self.process)
        if self.step == 0:
            self.event(end, "first_step", "info", "First step")
        self.step += 1
        line = f"\repoch 1 step {self.step}/2000 loss {6.9 - self.step / 823:.3f} 1224 img/s"
        self.writer.output(START_NS + round(end * 1e9), line.encode())
        return True

    def _sample(self, t: float) -> None:
        for number, device in enumerate(self.devices):
            self._sample_gpu(t, device, 1.0 if number == 0 else 0.4)
        if self.tick % 2 == 0:
            turn = 3 if t < 23 else 10 if t < 33.1 else 6
            for core in range(self.cores):
                if self.cores <= 3:
                    busy = (0.96 if core == 0 else 0.14) * self._noise(0.04)
                elif core == turn:
                    busy = 0.9 * self._noise(0.1)
                else:
                    busy = 0.14 if self.random.random() < 0.03 else 0.01
                self.put("host.core", t, min(1.0, busy), index=core)
        self.put("host.cpu", t, 0.08)
        self.put("host.mem_used", t, (1.6 + min(0.8, max(0.0, t - 2))) * GIB)
        self.put("target.mem_rss", t, min(0.7, max(0.05, t - 2)) * GIB, process=self.process)
        self.put("target.cpu", t, 0.73, process=self.process)
        self.put("target.workers", t, 0, process=self.process)

    def _sample_gpu(self, t: float, device: int, load: float) -> None:
        dip = 0.65 if 33.3 < t < 33.8 else 1.0
        slow = THROTTLED[0] <= t < THROTTLED[1]
        values: dict[str, float] = {
            "gpu.util": round(31 * load * dip) / 100, "gpu.mem_util": 0.11 * load * dip,
            "gpu.power": (212 if slow else 228) * self._noise(0.02) * (dip + 1) / 2 * (0.5 + load / 2),
            "gpu.clock_sm": 1755 if slow else 1980, "gpu.mem_used": 7.1 * GIB, "gpu.mem_free": 133.3 * GIB,
            "gpu.temperature": 54, "gpu.throttle": 0x20 if slow else 0,
        }
        if not GAP[0] < t < GAP[1]:
            values |= {"gpu.pcie_rx": 0.74e9 * self._noise(0.06) * dip, "gpu.pcie_tx": 0.03e9}
        for metric, value in values.items():
            self.put(metric, t, value, device=device)
        if load == 1.0:
            pulse: Callable[[float], float] = lambda x: 2.1 + 3.5 * ((x * 7.3) % 1)  # noqa: E731
            for name, gib in (("allocated", pulse(t)), ("reserved", 6.4), ("peak", 5.6)):
                self.put(f"torch.mem_{name}", t, gib * GIB, device=device, process=self.process)


def baseline(path: Path, until: float = 46.2, finish: bool = False) -> Story:
    """The run of picture 2 at 00:46, still being recorded unless `finish`."""
    story = Story(path)
    story.advance(until)
    story.event(5.7, "warmup_end", "info", "Warm-up ended at step 44")
    story.event(6.5, "trace", "info", "Trace of 8 steps, read after the run")
    story.event(23.4, "throttle", "error", "Throttled 2.8 s, thermal; 54 steps left out")
    story.event(29.4, "gap", "warning", "PCIe read timed out, gap of 0.7 s", reason="PCIe read timed out")
    story.writer.commit()
    if finish:
        story.finish(until)
    return story


def without_gpu(path: Path, until: float = 30.0) -> Story:
    """The run of picture 8 at 00:30."""
    story = Story(path, cores=2, cpu_only=True, first_step_s=2.0)
    story.event(0.0, "source_off", "info", "NVML absent: GPU source is off for this run")
    story.advance(until)
    story.event(5.1, "warmup_end", "info", "Warm-up ended at step 31")
    story.writer.commit()
    return story
