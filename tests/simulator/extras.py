"""What a step does beside forward, backward and optimizer: readings, named work, the allocator."""

from __future__ import annotations

from tests.simulator import actions as A
from tests.simulator.actions import Action, Copy
from tests.simulator.loop import COMPUTE, Loop, Named

ANNOTATION = "user_annotation"


def reading(loop: Loop) -> None:
    """A scalar read, or a synchronisation."""
    spec = loop.spec
    loop.python(2)
    if spec.reading.startswith("device") or spec.reading == "phases":
        loop.add(
            Action(
                A.SYNC, loop.host(4), "cudaDeviceSynchronize", A.PYTHON, -1, loop.draw.ns(6, 0.1), info=True
            )
        )
        return
    if spec.reading == "lagging":
        name, before = ("loss", loop.number), ("loss", loop.number - 1)
        copy = Copy(4, "d2h", "pinned", "async")
        loop.add(
            Action(A.PUSH, 0, "aten::copy_", A.SCALAR, info="cpu_op"),
            Action(A.WORK, loop.host(3), role=A.SCALAR),
            Action(
                A.COPY,
                loop.host(7),
                "cudaMemcpyAsync",
                A.SCALAR,
                COMPUTE,
                loop.latency(),
                loop.gap(),
                1300,
                copy,
            ),
            Action(A.WORK, loop.host(1), role=A.SCALAR),
            Action(A.POP, 0, "aten::copy_", A.SCALAR),
            Action(A.RECORD, 1600, "cudaEventRecord", A.PYTHON, COMPUTE, info=name),
            Action(
                A.SYNC,
                loop.host(3),
                "cudaEventSynchronize",
                A.PYTHON,
                COMPUTE,
                loop.draw.ns(6, 0.1),
                info=before,
            ),
        )
        return
    if spec.reading == "event_end":
        event = ("timer", loop.number)
        loop.add(
            Action(A.RECORD, 1600, "cudaEventRecord", A.PYTHON, COMPUTE, info=event),
            Action(
                A.SYNC,
                loop.host(3),
                "cudaEventSynchronize",
                A.PYTHON,
                COMPUTE,
                loop.draw.ns(6, 0.1),
                info=True,
            ),
        )
        return
    scalar(loop, A.SCALAR, 4)


def scalar(loop: Loop, role: str, size: int) -> None:
    """A copy to the host that the host waits for: .item(), or a tensor of a checkpoint."""
    names: tuple[str, ...] = ("aten::item", "aten::_local_scalar_dense")
    if size > 4:
        names = ("aten::to", "aten::_to_copy", "aten::copy_")
    elif loop.spec.reading == "nonzero":
        names = ("aten::index", "aten::nonzero")
    for name in names:
        loop.add(Action(A.PUSH, 0, name, role, info="cpu_op"), Action(A.WORK, loop.host(2.0), role=role))
    memory = loop.spec.scalar
    copy = Copy(size, "d2h", memory, "block" if memory == "pageable" else "async", loop.draw.ns(4, 0.1))
    run = loop.draw.ns(1.3 + size / loop.gpu.rate / 300, 0.05)
    loop.add(
        Action(A.COPY, loop.host(7), "cudaMemcpyAsync", role, COMPUTE, loop.latency(), loop.gap(), run, copy),
        Action(A.WORK, 300, role=role),
        Action(
            A.SYNC, loop.host(2.2), "cudaStreamSynchronize", role, COMPUTE, loop.draw.ns(5, 0.1), info=True
        ),
    )
    for name in reversed(names):
        loop.add(Action(A.WORK, loop.host(1.2), role=role), Action(A.POP, 0, name, role))


def named_work(loop: Loop, named: Named) -> None:
    """Work beside the training, in an annotation."""
    if loop.number % named.every:
        return
    loop.add(Action(A.PUSH, 0, named.name, A.NAMED, info=ANNOTATION))
    pieces = max(named.kernels, named.saves, 1)
    for _ in range(pieces):
        loop.add(Action(A.WORK, loop.draw.ns(named.us / pieces, named.spread), role=A.NAMED))
        if named.kernels:
            loop.operator(("aten::linear", "aten::addmm"), [("gemm", loop.spec.kernel_us)], A.NAMED)
        if named.saves:
            scalar(loop, A.SAVE, 2_000_000)
    loop.add(Action(A.POP, 0, named.name, A.NAMED))


def allocate(loop: Loop, position: int, length: int) -> None:
    """Allocator calls spread evenly over forward and backward."""
    spec = loop.spec
    if spec.allocator == "none" or position % max(length // spec.allocations, 1):
        return
    if spec.allocator == "retry":
        loop.add(Action(A.ALLOC, loop.draw.ns(900, 0.25), "cudaFree", A.ALLOCATOR, info=True))
    loop.add(Action(A.ALLOC, loop.draw.ns(190, 0.15), "cudaMalloc", A.ALLOCATOR, info=False))


def hop(loop: Loop, source: int, target: int) -> None:
    """Activations go to the next device."""
    event = ("hop", loop.number, len(loop.out))
    loop.add(
        Action(A.PUSH, 0, "aten::to", info="cpu_op"),
        Action(A.WORK, loop.host(4)),
        Action(
            A.COPY,
            loop.host(9),
            "cudaMemcpyPeerAsync",
            A.OPERATOR,
            COMPUTE,
            loop.latency(),
            loop.gap(),
            loop.draw.ns(30, 0.02),
            Copy(1_000_000, "p2p", "device", "async"),
            source,
        ),
        Action(A.RECORD, 1600, "cudaEventRecord", stream=COMPUTE, info=event, device=source),
        Action(A.WAIT, 1800, "cudaStreamWaitEvent", stream=COMPUTE, info=event, device=target),
        Action(A.WORK, loop.host(2)),
        Action(A.POP, 0, "aten::to"),
    )
