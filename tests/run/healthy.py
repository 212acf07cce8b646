"""Small runs that are whole, with something in every table: what the fuzzing damages."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from profiler.run.results import append_result
from profiler.run.writer import RunWriter
from tests.runs import CPU_STAGES_MS, MS, make_run
from tests.traces import Timeline


@dataclass(frozen=True)
class Healthy:
    """A run file by name."""

    name: str
    data: bytes


def healthy() -> tuple[Healthy, ...]:
    """A GPU run and a CPU run that ended, one that was cut off, and one with a trace."""
    trace = _trace()

    def happened(writer: RunWriter, start: int) -> None:
        for k in range(30):
            writer.event(start + k * 50 * MS, "mark", "info", f"mark {k}", data={"k": k, "of": [1, 2]})
            writer.output(start + k * 50 * MS, b"step %d\n" % k)

    def traced(writer: RunWriter, start: int) -> None:
        happened(writer, start)
        writer.attach(start, "kineto", "trace.json", trace, process=1, properties={"steps": [1, 4]})

    gpu = {"gpu.util": lambda k: k % 10 / 10, "gpu.power": 300.0,
           "gpu.throttle": lambda k: 4.0 * (k % 7 == 0), "gpu.mem_used": 2.0**33,
           "gpu.energy": lambda k: 30.0 * k}
    host = {"host.cpu": 0.4, "recorder.cpu": 0.01}
    with tempfile.TemporaryDirectory() as folder:
        def run(name: str, **planned: object) -> Healthy:
            path = make_run(Path(folder) / f"{name}.stepscope", host=host, **planned)  # type: ignore[arg-type]
            if planned.get("state") != "recording":
                append_result(path, "experiment", {"setting": "loader.num_workers", "runs": []})
            return Healthy(name, path.read_bytes())

        device = {"forward": 5.0, "backward": 9.0, "optimizer": 1.0}
        return (run("gpu", gpu=gpu, device=device, lag={"data": 0.1}, events=happened),
                run("cpu", stages=CPU_STAGES_MS, data_cpu=1.0, steps=400, workers=2, events=happened),
                run("cut", gpu=gpu, steps=200, events=happened, state="recording"),
                run("traced", gpu=gpu, device=device, events=traced))


def _trace() -> bytes:
    line = Timeline()
    for step in range(6):
        t = 1_000_000 + step * 10_000_000
        line.op("aten::conv2d", t, t + 3_000_000)
        line.kernel("gemm", t + 3_100_000, t + 8_000_000, t + 1_000_000)
    return line.bytes()


