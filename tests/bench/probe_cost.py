"""What the probe costs a loop whose step takes 2 to 3 ms: `python tests/bench/probe_cost.py`.

Within one process the hooks are put in and taken out in blocks of steps, pairs of blocks
in the order A B, B A. The time of a block is that of its median step; what the probe does
for many steps at once would vanish there, so it is timed apart and added, spread over the
steps. Printed are the median over pairs of the time with over the time without, and its
95 % bootstrap interval; apart from that, what a profiler window costs. With `--device cuda` the
step is one of many small layers, which the host takes its time to launch.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROBE = Path(__file__).resolve().parents[2] / "profiler" / "probe"
SKIP = 3  # steps at the start of a block, in which Python's caches settle


def start(spool: str) -> Any:
    """The probe in this process, as sitecustomize starts it."""
    os.environ["STEPSCOPE_SPOOL"] = spool
    sys.path.insert(0, str(PROBE))
    import _stepscope_probe
    import torch  # noqa: F401

    assert _stepscope_probe.start()
    return _stepscope_probe._probe


class Work:
    """A loop over a DataLoader whose step takes about `ms` without the probe."""

    def __init__(self, ms: float, device: str) -> None:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.device = device
        width, depth = 64, 6
        while True:
            layers: list[torch.nn.Module] = []
            for _ in range(depth):
                layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
            self.model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
            data = torch.utils.data.TensorDataset(torch.randn(4096, width), torch.randint(0, 10, (4096,)))
            batches = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data), 32, True)
            self.loader = torch.utils.data.DataLoader(data, sampler=batches, batch_size=None)
            self.batches = self._forever()
            if statistics.median(self.step() for _ in range(40)) >= ms * 1e6:
                return
            if device == "cpu":
                width = int(width * 1.2)
            else:
                depth += 2

    def _forever(self) -> Iterator[Any]:
        while True:
            yield from self.loader

    def step(self) -> int:
        """ns of one step."""
        import torch

        t0 = time.perf_counter_ns()
        x, y = (part.to(self.device) for part in next(self.batches))
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return time.perf_counter_ns() - t0

    def block(self, steps: int) -> float:
        """Median ns of a step: what else runs on the machine stretches some of them."""
        for _ in range(SKIP):
            self.step()
        return statistics.median(self.step() for _ in range(steps))


def interval(ratios: list[float], rounds: int = 4000) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


class Played:
    """The ns in which notes of many steps are played and their records written."""

    def __init__(self, probe: Any) -> None:
        self.ns = 0
        tape = type(probe.loop.tape)
        stop = tape.stop

        def timed(self_: Any) -> None:
            t0 = time.perf_counter_ns()
            live = self_.thread
            stop(self_)
            if live:
                self.ns += time.perf_counter_ns() - t0

        tape.stop = timed


def compare(probe: Any, work: Work, pairs: int, steps: int) -> tuple[list[float], list[float]]:
    """Ratios with over without, and the times without in ns."""
    ratios, bare = [], []
    played = Played(probe)
    for i in range(pairs):
        times = {}
        for on in (True, False) if i % 2 else (False, True):
            (probe.enable if on else probe.disable)()
            played.ns = 0
            times[on] = work.block(steps)
            probe.loop.tape.stop()
            times[on] += played.ns / (SKIP + steps)
        ratios.append(times[True] / times[False])
        bare.append(times[False])
    probe.enable()
    return ratios, bare


def window(probe: Any, work: Work, spool: str, steps: int) -> dict[str, float]:
    """Milliseconds of a step inside a profiler window and beside it, and of its two ends."""
    beside = statistics.median(work.step() for _ in range(50)) / 1e6
    (Path(spool) / "trace_now").write_text(str(steps))
    time.sleep(0.3)  # the probe looks four times a second
    times = [work.step() / 1e6 for _ in range(steps + 1)]
    assert probe.window.profile is None
    return {"beside": beside, "inside": statistics.median(times[1:-1]), "ends": times[0] + times[-1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--steps", type=int, default=20, help="steps in a block")
    parser.add_argument("--device", default="cpu", help="of torch")
    parser.add_argument("--ms", type=float, default=2.3, help="milliseconds of a step")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as spool:
        probe = start(spool)
        work = Work(args.ms, args.device)
        ratios, bare = compare(probe, work, args.pairs, args.steps)
        low, high = interval(ratios)
        extra = statistics.median((r - 1) * b for r, b in zip(ratios, bare, strict=True)) / 1e3
        print(f"step without the probe {statistics.median(bare) / 1e6:.2f} ms; with over without "
              f"{statistics.median(ratios):.4f} (95 % interval {low:.4f} to {high:.4f}, {args.pairs} pairs); "
              f"{extra:.0f} us a step")
        costs = window(probe, work, spool, 8)
        print(f"profiler window: step of {costs['inside']:.2f} ms inside, {costs['beside']:.2f} ms beside, "
              f"and {costs['ends']:.0f} ms at its two ends")
        probe.finish()


if __name__ == "__main__":
    main()
