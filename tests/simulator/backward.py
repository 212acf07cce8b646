"""Backward on the autograd thread with its all-reduces, and the optimizer."""

from __future__ import annotations

from tests.simulator import actions as A
from tests.simulator.actions import Action, Kernel
from tests.simulator.extras import ANNOTATION, allocate, hop
from tests.simulator.loop import COMPUTE, REDUCING, Loop, device_of, walk
from tests.simulator.operators import COLLECTIVE, LOSS, PER_PARAMETER, Op


def backward(loop: Loop, last: bool) -> None:
    """The autograd thread's part, with the all-reduces of buckets."""
    spec, count = loop.spec, len(loop.forward)
    thread = "autograd" if spec.autograd_thread else "main"
    loop.python(6)
    if spec.autograd_thread:
        loop.add(Action(A.THREAD, loop.host(24), "autograd", A.HANDOVER))
    buckets = {count - 1 - (k + 1) * count // spec.buckets for k in range(spec.buckets - 1)} | {0}
    for op in reversed(LOSS):
        if op.node:
            node(loop, op, loop.spec.kernel_us, device_of(loop, count - 1), 0)
    for k, op, mean in reversed(list(walk(loop))):
        device = device_of(loop, k)
        if k + 1 < count and device != device_of(loop, k + 1):
            hop(loop, device_of(loop, k + 1), device)
            if spec.autograd_thread:
                thread = f"autograd{device}" if device else "autograd"
                loop.add(Action(A.THREAD, loop.host(12), thread, A.HANDOVER))
        if op.node:
            allocate(loop, count + 2 * k, count * 3)
            node(loop, op, mean, device, k + 1)
        if last and spec.reduce == "buckets" and k in buckets:
            collective(loop, spec.reduce_us / len(buckets))
    if spec.reduce == "buckets" and last:
        join(loop)
    if spec.autograd_thread:
        loop.add(Action(A.THREAD, loop.host(18), "main", A.HANDOVER))
    if spec.reduce == "end" and last:
        loop.python(6)
        collective(loop, spec.reduce_us)
        join(loop)


def node(loop: Loop, op: Op, mean: float, device: int, sequence: int) -> None:
    """One node of the backward, and the gradient's accumulation where it has a parameter."""
    names = (f"autograd::engine::evaluate_function: {op.node}", op.node, *op.backward)
    start = len(loop.out)
    loop.operator(names, [(key, max(mean * weight, 1.2)) for key, weight in op.grads], device=device)
    loop.out[start + 2] = loop.out[start + 2]._replace(latency=-sequence)
    if op.parameter:
        loop.python(1.2, A.OPERATOR)
        accumulate = "torch::autograd::AccumulateGrad"
        loop.operator((f"autograd::engine::evaluate_function: {accumulate}", accumulate), [])
    loop.python(1.5, A.OPERATOR)


def collective(loop: Loop, us: float) -> None:
    event, role = ("reduce", loop.number, len(loop.out)), A.REDUCE
    names = (("record_param_comms", "cpu_op"), ("nccl:all_reduce", ANNOTATION))
    for name, category in names:
        loop.add(Action(A.PUSH, 0, name, role, info=category), Action(A.WORK, loop.host(3), role=role))
    run = loop.draw.ns(us, loop.spec.reduce_spread)
    kernel = Kernel(COLLECTIVE[loop.spec.gpu], 24, 544, 96, 0, True, int(us * 30000) + 1)
    loop.add(
        Action(A.RECORD, 1600, "cudaEventRecord", role, COMPUTE, info=event),
        Action(A.WORK, 200, role=role),
        Action(A.WAIT, 1800, "cudaStreamWaitEvent", role, REDUCING, info=event),
        Action(
            A.LAUNCH,
            loop.host(8),
            "cudaLaunchKernelExC",
            role,
            REDUCING,
            loop.latency(),
            loop.gap(),
            run,
            kernel,
        ),
    )
    for name, _ in reversed(names):
        loop.add(Action(A.WORK, loop.host(3), role=role), Action(A.POP, 0, name, role))


def join(loop: Loop, part: int = 0) -> None:
    """The optimizer's stream waits for the collectives."""
    event = ("join", loop.number, part)
    loop.add(
        Action(A.RECORD, 1600, "cudaEventRecord", A.REDUCE, REDUCING, info=event),
        Action(A.WAIT, 1800, "cudaStreamWaitEvent", A.REDUCE, COMPUTE, info=event),
    )


def optimizer(loop: Loop) -> None:
    spec, name = loop.spec, "Optimizer.step#AdamW.step"
    loop.add(Action(A.PUSH, 0, name, A.PYTHON, info=ANNOTATION))
    loop.python(12)
    for device in range(spec.peers):
        if spec.optimizer == "per_parameter":
            for _ in range(spec.parameters // spec.peers):
                for op in PER_PARAMETER:
                    loop.operator((op,), [("pointwise", max(spec.kernel_us * 0.15, 1.5))], device=device)
                    loop.python(1.5)
        else:
            launches = 4 if spec.optimizer == "foreach" else 1
            for _ in range(launches):
                loop.operator(
                    ("aten::_foreach_addcdiv_",) if launches > 1 else ("aten::_fused_adamw_",),
                    [("multi", max(spec.kernel_us * 2.5, 4.0))],
                    device=device,
                )
                loop.python(3)
    loop.python(5)
    loop.add(Action(A.POP, 0, name, A.PYTHON))
