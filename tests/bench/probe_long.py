"""A loop of very many steps with the probe inside: does the target's memory grow, does a step cost more?

    python tests/bench/probe_long.py [--steps 10000000] [--parts 10]

A training loop over a DataLoader with the smallest of models; what the probe writes is deleted as the
recorder does once it has read it. Printed for each part: CPU of a step with the probe, of a bare step in
turns with it, and the memory of the process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.probe_cost import start
from tests.bench.simulated import resident, slope
from tests.bench.verdicts import tell

MB = 1_000_000
CLEAN = 20_000  # steps between two times that segments are deleted
GROWTH, SLOWER = 4.0, 1.25  # MB over all; a step in the last part against the first, beside bare ones


class Loop:
    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = torch.nn.Linear(2, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        data = torch.utils.data.TensorDataset(torch.randn(2048, 2), torch.randn(2048, 2))
        batches = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(data), 2, True)
        self._loader = torch.utils.data.DataLoader(data, sampler=batches, batch_size=None)
        self._batches = self._forever()

    def _forever(self) -> Iterator[Any]:
        while True:
            yield from self._loader

    def steps(self, count: int) -> float:
        """us of CPU a step."""
        begin = time.thread_time()
        for _ in range(count):
            x, y = next(self._batches)
            loss = (self.model(x) - y).square().sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return (time.thread_time() - begin) / count * 1e6


def clean(spool: Path) -> int:
    """Delete all segments but the newest, as the recorder does. How many bytes there were in them."""
    files = sorted(spool.glob("*.spool"), key=lambda path: int(path.name.split(".")[1]))
    read = sum(path.stat().st_size for path in files[:-1])
    for path in files[:-1]:
        path.unlink()
    return read


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--parts", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        probe, loop = start(name), Loop()
        loop.steps(2000)
        read, ratios = 0, []
        memory: list[tuple[float, float]] = []
        print(f"{'steps':>10}{'with us':>10}{'bare us':>10}{'ratio':>8}{'memory MB':>11}{'spool MB':>10}")
        each = args.steps // args.parts
        for part in range(args.parts):
            with_probe, bare, turns = 0.0, 0.0, 0
            for done in range(0, each, CLEAN):
                with_probe += loop.steps(min(CLEAN, each - done))
                read += clean(Path(name))
                probe.disable()
                bare += loop.steps(1000)
                probe.enable()
                turns += 1
            ratios.append(with_probe / bare)
            memory.append((part, resident() / MB))
            print(f"{each * (part + 1):10}{with_probe / turns:10.1f}{bare / turns:10.1f}{ratios[-1]:8.2f}"
                  f"{memory[-1][1]:11.1f}{read / MB:10.1f}", flush=True)
        lost = probe.spool.dropped
    grown, slower = slope(memory[1:]) * (args.parts - 1), ratios[-1] / ratios[0]
    verdicts = [(grown <= GROWTH, f"memory grew by {grown:.1f} MB (at most {GROWTH:g})"),
                (slower <= SLOWER, f"a step costs {slower:.2f} times the first ones (at most {SLOWER})"),
                (not lost, f"{lost} records were dropped")]
    return 0 if tell(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
