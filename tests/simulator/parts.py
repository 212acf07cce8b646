"""The parts of one step of a training loop, in the order in which the loop runs them."""

from __future__ import annotations

from math import exp

from tests.simulator import actions as A
from tests.simulator.actions import Action, Copy, Program
from tests.simulator.backward import backward, collective, join, optimizer
from tests.simulator.extras import ANNOTATION, allocate, hop, named_work, reading, scalar
from tests.simulator.loop import COMPUTE, COPYING, SIDE, Loop, Spec, device_of, walk
from tests.simulator.operators import LOSS


def program(spec: Spec, seed: int) -> Program:
    """Every step of a run of this job."""
    loop, steps = Loop(spec, seed), []
    for number in range(spec.before + spec.steps):
        loop.out, loop.number = [], number
        loop.factor = exp(loop.draw.random.gauss(0.0, spec.vary))
        step(loop)
        steps.append(loop.out)
    first = loop.draw.random.randint(spec.before, 200)
    return Program(steps, spec.before, spec.loader, spec.queue, first, spec.drained, spec.restart, spec.peers)


def step(loop: Loop) -> None:
    """All of one step, and the pause after it."""
    spec = loop.spec
    for part in range(spec.accumulate):
        if not spec.synthetic:
            batch(loop, part)
        if part == 0 and not spec.inference:
            zero_grad(loop)
        if spec.graph:
            graph(loop)
        else:
            forward(loop)
            for named in spec.named:
                if named.where == "middle":
                    named_work(loop, named)
            if spec.reading in ("forward", "phases"):
                reading(loop)
            if not spec.inference:
                backward(loop, last=part == spec.accumulate - 1)
    if spec.reading == "phases":
        reading(loop)
    if not spec.inference and (not spec.graph or spec.graphs > 1):
        if spec.unscale:
            scalar(loop, A.SCALAR, 4)
            loop.python(4)
        optimizer(loop)
    if spec.reading in ("end", "device_end", "event_end", "lagging", "phases"):
        reading(loop)
    if spec.allocator == "empty_cache":
        for _ in range(spec.allocations):
            loop.add(Action(A.ALLOC, loop.draw.ns(120, 0.2), "cudaFree", A.ALLOCATOR, info=True))
    for named in spec.named:
        if named.where == "end":
            named_work(loop, named)
    loop.python(12)
    loop.add(Action(A.WORK, loop.host(22), role=A.PAUSE))


def batch(loop: Loop, part: int) -> None:
    """The fetch and the copies. A prefetcher copies a batch ahead on a stream of its own."""
    spec = loop.spec
    if spec.copy_thread:
        before = ("batch", loop.number - 1, part)
        loop.add(Action(A.WAIT, 1800, "cudaStreamWaitEvent", stream=COMPUTE, info=before))
    elif spec.prefetcher:
        event = ("batch", loop.number, part)
        loop.add(
            Action(A.RECORD, 1600, "cudaEventRecord", stream=COPYING, info=event),
            Action(A.WAIT, 1800, "cudaStreamWaitEvent", stream=COMPUTE, info=event),
        )
    every, factor = spec.burst
    service = loop.draw.ns(spec.service_us, spec.service_spread)
    if every and loop.number % every == every // 2:
        service = int(service * factor)
    kind = "_MultiProcessingDataLoaderIter" if spec.loader.workers else "_SingleProcessDataLoaderIter"
    loop.add(
        Action(
            A.FETCH,
            loop.draw.ns(spec.fetch_us, 0.15),
            f"enumerate(DataLoader)#{kind}.__next__",
            A.LOADER,
            latency=loop.draw.ns(40, 0.1),
            run=service,
            info="" if spec.loader.workers else "inline",
        )
    )
    begun = len(loop.out)
    for size in spec.copies:
        copy_batch(loop, size)
    if spec.copy_thread:
        record = Action(A.RECORD, 1600, "cudaEventRecord", stream=COPYING, info=("batch", loop.number, part))
        copies = [*loop.out[begun:], record]
        loop.out[begun:] = [Action(A.BESIDE, 0, "copier", A.BATCH, info=copies)]


def copy_batch(loop: Loop, size: int) -> None:
    """aten::to of one tensor of the batch."""
    spec, names = loop.spec, ("aten::to", "aten::_to_copy", "aten::copy_")
    for name in names:
        loop.add(
            Action(A.PUSH, 0, name, A.BATCH, info="cpu_op"), Action(A.WORK, loop.host(3.2), role=A.BATCH)
        )
    stream = COPYING if spec.prefetcher else COMPUTE
    rate = loop.gpu.rate * (1.0 if spec.memory == "pinned" else 0.3)
    run = loop.draw.ns(size / rate / 1000 + 1.0, 0.02)
    pageable = spec.memory == "pageable"
    latency = loop.draw.ns(20, 0.05) if pageable else loop.latency()
    lead = int(min(run * 0.04, 70_000)) if pageable else 0
    loop.add(
        Action(
            A.COPY,
            loop.host(8),
            "cudaMemcpyAsync",
            A.BATCH,
            stream,
            latency,
            loop.gap(),
            run,
            Copy(size, "h2d", spec.memory, "stage" if pageable else "async", lead),
        )
    )
    if pageable:
        loop.add(
            Action(A.WORK, 300, role=A.BATCH),
            Action(
                A.SYNC,
                loop.host(3),
                "cudaStreamSynchronize",
                A.BATCH,
                stream,
                loop.draw.ns(5, 0.1),
                info=True,
            ),
        )
    for name in names:
        loop.add(Action(A.WORK, loop.host(1.2), role=A.BATCH), Action(A.POP, 0, name, A.BATCH))


def zero_grad(loop: Loop) -> None:
    name = "Optimizer.zero_grad#AdamW.zero_grad"
    loop.add(Action(A.PUSH, 0, name, A.PYTHON, info=ANNOTATION))
    loop.python(loop.spec.zero_grad_us)
    for _ in range(loop.spec.memsets):
        loop.add(
            Action(
                A.MEMSET,
                loop.host(6),
                "cudaMemsetAsync",
                A.OPERATOR,
                COMPUTE,
                loop.latency(),
                loop.gap(),
                loop.draw.ns(3.2, 0.02),
                4194304,
            )
        )
    loop.add(Action(A.POP, 0, name, A.PYTHON))


def graph(loop: Loop) -> None:
    """Forward and backward as graphs; the optimizer too where there is one graph."""
    kernels = []
    for _, op, mean in [*walk(loop), *((k, op, mean * 2) for k, op, mean in walk(loop))]:
        if op.kernel:
            loop.kernel(op.kernel, max(mean * op.weight, 1.5))
            launch = loop.out.pop()
            kernels.append(launch.info._replace(run=launch.run, gap=launch.gap))
    size = -(-len(kernels) // loop.spec.graphs)
    for k in range(0, len(kernels), size):
        call, latency, gap = loop.host(28), loop.latency(), loop.gap()
        part = kernels[k : k + size]
        loop.add(Action(A.GRAPH, call, "cudaGraphLaunch", A.OPERATOR, COMPUTE, latency, gap, 0, part))
        loop.python(20)


def forward(loop: Loop) -> None:
    spec = loop.spec
    if spec.ranks > 1:
        loop.add(Action(A.PUSH, 0, "DistributedDataParallel.forward", A.PYTHON, info=ANNOTATION))
        loop.python(2)
    branches = {(k + 1) * len(loop.forward) // (spec.side + 1) for k in range(spec.side)}
    hiccup = loop.draw.random.random() < spec.hiccup[0]
    many = {(k + 1) * len(loop.forward) // (spec.many + 1) for k in range(spec.many)}
    for k, op, mean in walk(loop):
        device = device_of(loop, k)
        if k and device != device_of(loop, k - 1):
            hop(loop, device_of(loop, k - 1), device)
        loop.python(2.5)
        if hiccup and k == len(loop.forward) // 2:
            loop.add(Action(A.WORK, loop.draw.ns(spec.hiccup[1], 0.3), role=A.PYTHON))
        if spec.gather and k % 8 == 0:
            collective(loop, spec.reduce_us * 8 / len(loop.forward))
            join(loop, k)
        allocate(loop, k, len(loop.forward) * 3)
        if k in branches:
            branch(loop, mean)
        launches = [(op.kernel, max(mean * op.weight, 1.2))] if op.kernel else []
        start = len(loop.out)
        loop.operator(op.names, launches, device=device)
        if op.node:
            loop.out[start] = loop.out[start]._replace(latency=k + 1)
        if k in many and spec.reading in ("many", "device_many", "nonzero"):
            reading(loop)
    if spec.ranks > 1:
        loop.add(Action(A.POP, 0, "DistributedDataParallel.forward", A.PYTHON))
    for op in LOSS:
        loop.python(2.5)
        loop.operator(
            op.names,
            [(op.kernel, max(loop.spec.kernel_us * op.weight, 1.2))],
            device=device_of(loop, len(loop.forward) - 1),
        )


def branch(loop: Loop, mean: float) -> None:
    """Two operators on a second stream, joined again."""
    out, back = ("out", loop.number, len(loop.out)), ("back", loop.number, len(loop.out))
    loop.add(
        Action(A.RECORD, 1600, "cudaEventRecord", stream=COMPUTE, info=out),
        Action(A.WAIT, 1800, "cudaStreamWaitEvent", stream=SIDE, info=out),
    )
    for _ in range(2):
        loop.operator(("aten::linear", "aten::addmm"), [("gemm", mean * 1.5)], stream=SIDE)
        loop.python(2.5)
    loop.operator(("aten::linear", "aten::addmm"), [("gemm", mean)])
    loop.add(
        Action(A.RECORD, 1600, "cudaEventRecord", stream=SIDE, info=back),
        Action(A.WAIT, 1800, "cudaStreamWaitEvent", stream=COMPUTE, info=back),
    )
