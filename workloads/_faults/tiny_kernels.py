"""The model also computes running statistics, one number at a time.

After its output it runs a chain of 5,000 element-wise operations on 64 numbers at
strength 1. Each is a kernel of a few microseconds that takes as long to launch.

Rule launch_bound, verdict launch_bound, stage forward. On a CPU the operators are
its compute: compute_bound. Remedy: CUDA graphs, which launch them all at once.
Factor on a CPU against the control: 1.5 to 4.
"""

from __future__ import annotations

from typing import Any

from workloads._faults import EVERY

NAME = "tiny_kernels"
TITLE = "Tiny kernels"
VERDICT = "launch_bound"
ON_CPU = "compute_bound"
RULE = "launch_bound"
STAGE = "forward"
REMEDY = ("cuda_graphs", True)
FACTOR = (1.5, 4.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1}
FAULTY: dict[str, Any] = {}
TRACE = True
OPERATIONS = 5000


def model(model: Any, strength: float) -> Any:
    """`model`, and after each of its calls the statistics."""
    import torch

    class WithStatistics(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.register_buffer("mean", torch.zeros(64, device=next(model.parameters()).device))

        def forward(self, *inputs: Any) -> Any:
            output = self.model(*inputs)
            self.measure()
            return output

        @torch.compiler.disable  # a graph of so many operations would compile for minutes
        @torch.no_grad()
        def measure(self) -> None:
            for _ in range(round(OPERATIONS * strength)):
                self.mean.mul_(0.99)

    return WithStatistics()
