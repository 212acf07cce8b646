"""A training loop drawn from a specification: the actions of every step.

Means are fixed for a run; each step draws every duration anew around them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp

from tests.simulator import actions as A
from tests.simulator.actions import Action, Kernel, Loader
from tests.simulator.operators import BLOCKS, FORWARD, GPUS, Op, kernel_name

COMPUTE, COPYING, REDUCING, SIDE = 7, 24, 20, 28  # streams


@dataclass(frozen=True)
class Named:
    """Host work in an annotation of the user's."""

    name: str
    us: float
    every: int = 1
    spread: float = 0.2
    where: str = "end"  # end, middle (between forward and backward)
    kernels: int = 0  # launches in it
    saves: int = 0  # blocking copies to the host in it


@dataclass(frozen=True)
class Spec:
    """A job. Times in us."""

    gpu: str = "A100"
    family: str = "transformer"
    operators: int = 60  # of the forward
    kernel_us: float = 40.0
    host_scale: float = 1.0
    spread: float = 0.15  # of host durations
    kernel_spread: float = 0.01
    optimizer: str = "foreach"  # foreach, fused, per_parameter
    parameters: int = 40
    reading: str = "end"  # none, end, forward, many, device_end, device_many, event_end
    scalar: str = "pinned"  # how a scalar read copies: pinned, pageable
    many: int = 8
    loader: Loader = field(default_factory=lambda: Loader(4, 2))
    service_us: float = 1000.0  # of a batch
    service_spread: float = 0.1
    burst: tuple[int, float] = (0, 0.0)  # every so many batches one takes so many times as long
    fetch_us: float = 90.0
    copies: tuple[int, ...] = (4_000_000, 600, 600)
    memory: str = "pinned"
    prefetcher: bool = False  # the batch is copied one step ahead on a stream of its own
    copy_thread: bool = False  # by a thread of its own
    reduce: str = "none"  # none, buckets, end
    reduce_us: float = 0.0  # of a step
    buckets: int = 8
    reduce_spread: float = 0.1  # others' jitter
    ranks: int = 1
    allocator: str = "none"  # none, empty_cache, retry
    allocations: int = 12
    named: tuple[Named, ...] = ()
    graph: bool = False
    accumulate: int = 1
    memsets: int = 0
    side: int = 0  # branches of the forward on a second stream
    peers: int = 1  # devices that share the operators, one after the other
    autograd_thread: bool = True
    zero_grad_us: float = 30.0
    steps: int = 6
    before: int = 8
    queue: int = 1020
    drained: bool = True
    hiccup: tuple[float, float] = (0.0, 0.0)  # in how many steps Python stops, and for how long
    unscale: bool = False  # a scalar read between backward and optimizer, as gradient scaling does
    vary: float = 0.0  # of the work of a step, as with sequences of several lengths
    rough: float = 1.0  # by how much latencies and gaps of the device scatter more than usual
    restart: int = -1
    late: bool = False  # a kernel starts some time after the end of its launch call
    graphs: int = 1  # of a step, where there are graphs; with several the optimizer is not in one
    inference: bool = False  # forward only
    synthetic: bool = False  # no loader and no copies
    gather: bool = False  # parameters are gathered before each block of the forward


class Draw:
    """Noise: a lognormal of mean about 1."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def ns(self, us: float, spread: float) -> int:
        return max(int(1000 * us * exp(self.random.gauss(0.0, spread))), 1)


class Loop:
    """Draws the steps of one job."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.spec, self.draw, self.gpu = spec, Draw(seed), GPUS[spec.gpu]
        blocks = BLOCKS[spec.family]
        self.forward = [FORWARD[blocks[k % len(blocks)]] for k in range(spec.operators)]
        if spec.family == "transformer":
            self.forward = [FORWARD["embedding"], *self.forward[1:]]
        self.means = [spec.kernel_us * exp(self.draw.random.gauss(0.0, 0.5)) for _ in self.forward]
        self.out: list[Action] = []
        self.number = 0
        self.factor = 1.0

    # Times ------------------------------------------------

    def host(self, us: float) -> int:
        return self.draw.ns(us * self.spec.host_scale, self.spec.spread)

    def latency(self) -> int:
        return self.draw.ns(self.gpu.latency, 0.05 * self.spec.rough)

    def gap(self) -> int:
        return self.draw.ns(self.gpu.gap, 0.04 * self.spec.rough)

    # Actions ----------------------------------------------

    def add(self, *actions: Action) -> None:
        self.out.extend(actions)

    def python(self, us: float, role: str = A.PYTHON) -> None:
        self.add(Action(A.WORK, self.host(us), role=role))

    def kernel(
        self,
        key: str,
        us: float,
        role: str = A.OPERATOR,
        stream: int = COMPUTE,
        device: int = 0,
        call_us: float = 4.5,
    ) -> None:
        run = self.draw.ns(us * self.factor, self.spec.kernel_spread)
        block = self.draw.random.choice((128, 256, 512))
        called = self.host(call_us)
        latency = called + self.draw.ns(1.3, 0.1) if self.spec.late else self.latency()
        facts = Kernel(kernel_name(key, self.spec.gpu), max(int(us * 14), 1), block, 64, 8192)
        self.add(
            Action(
                A.LAUNCH,
                called,
                "cudaLaunchKernel",
                role,
                stream,
                latency,
                self.gap(),
                run,
                facts,
                device,
            )
        )

    def operator(
        self,
        names: tuple[str, ...],
        kernels: list[tuple[str, float]],
        role: str = A.OPERATOR,
        stream: int = COMPUTE,
        device: int = 0,
    ) -> None:
        """Nested operators with their launches; the host's time is spread over the levels."""
        for name in names:
            self.add(Action(A.PUSH, 0, name, role, info="cpu_op"), Action(A.WORK, self.host(2.0), role=role))
        for key, us in kernels:
            if key == "gemm" and self.draw.random.random() < 0.6:
                self.add(Action(A.CALL, 450, "cudaFuncSetAttribute", role), Action(A.WORK, 700, role=role))
            self.kernel(key, us, role, stream, device)
        for name in reversed(names):
            self.add(Action(A.WORK, self.host(1.0), role=role), Action(A.POP, 0, name, role))


def device_of(loop: Loop, k: int) -> int:
    """The device that runs operator k of the forward."""
    return k * loop.spec.peers // max(len(loop.forward), 1)


def walk(loop: Loop) -> Iterator[tuple[int, Op, float]]:
    yield from ((k, op, mean) for k, (op, mean) in enumerate(zip(loop.forward, loop.means, strict=True)))
