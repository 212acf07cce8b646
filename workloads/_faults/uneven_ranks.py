"""The last rank does more work than the others, which wait for it.

Under torchrun the last rank computes each forward eight more times at strength 1,
about twice as much as the whole step, as a rank does that got the longest samples.
The others wait for its gradients.

Rule communication_bound, verdict communication_bound, stage backward of the other
ranks. Remedy: no setting; even out the samples.
Factor on a CPU with two ranks against the control: 1.4 to 4.
"""

from __future__ import annotations

from typing import Any

from workloads._common import WorkloadError
from workloads._faults import TRAINING
from workloads._ranks import rank_of, ranks

NAME = "uneven_ranks"
TITLE = "Uneven ranks"
VERDICT = "communication_bound"
RULE = "communication_bound"
STAGE = "backward"
REMEDY = None
FACTOR = (1.4, 4.0)
NEEDS = "ranks"
WORKLOADS = TRAINING
CONTROL = {"threads": 1, "steps": 100}
FAULTY: dict[str, Any] = {}
FORWARDS = 8


def start(settings: Any, strength: float) -> None:
    """A single process is even with itself."""
    if ranks() < 2:
        raise WorkloadError("uneven_ranks needs two ranks or more",
                            "Start it by torchrun --nproc-per-node=2, or set uneven_ranks=0")


def model(model: Any, strength: float) -> Any:
    """The model, in the last rank one that computes its forward more than once."""
    import torch

    class Repeated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.owed = model, 0.0

        def forward(self, *inputs: Any) -> Any:
            self.owed += FORWARDS * strength
            while self.owed >= 1:
                self.owed -= 1
                with torch.no_grad():
                    self.model(*inputs)
            return self.model(*inputs)

    return Repeated() if rank_of() == ranks() - 1 else model
