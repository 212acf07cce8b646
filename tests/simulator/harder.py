"""Harder kinds of jobs than those of the reference data."""

from __future__ import annotations

from dataclasses import replace

from tests.simulator.actions import Loader
from tests.simulator.kinds import (
    Draw,
    compute_bound,
    device_us,
    host_bound,
    host_us,
    input_bound,
    launch_bound,
    slow_loader,
    sync_bound,
    transfer_bound,
)
from tests.simulator.loop import Named, Spec
from tests.simulator.operators import GPUS


def few_steps(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound, input_bound, transfer_bound))(r, s)
    return f"few steps, {name}", replace(spec, steps=r.choice((2, 3, 4)))


def bursty(r: Draw, s: Spec) -> tuple[str, Spec]:
    step = max(device_us(s), host_us(s))
    workers = r.choice((2, 4))
    return "bursty loader", replace(
        s,
        loader=Loader(workers, 2),
        service_us=step * workers * 0.8,
        before=24,
        burst=(workers * 2, r.uniform(3, 6)),
        steps=12,
    )


def side_streams(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "branches on a second stream", replace(s, side=r.randint(2, 8), reading=r.choice(("none", "end")))


def accumulation(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "gradient accumulation", replace(
        s,
        accumulate=r.choice((2, 4)),
        operators=40,
        ranks=2,
        reduce="buckets",
        reduce_us=device_us(s) * r.uniform(0.1, 0.9),
        memsets=0,
    )


def evaluation(r: Draw, s: Spec) -> tuple[str, Spec]:
    named = (
        Named("eval_metrics", device_us(s) * r.uniform(0.3, 0.8), kernels=r.randint(3, 9)),
        Named("save_checkpoint", 2000, every=3, saves=r.randint(2, 6)),
    )
    return "evaluation and checkpoints", replace(s, named=named[: r.choice((1, 2))], steps=9)


def two_devices(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "layers on two devices", replace(s, peers=2, memsets=0)


def runs_ahead(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "the host runs ahead", replace(
        s, reading="none", operators=r.randint(16, 30), steps=r.randint(4, 8), kernel_us=r.uniform(60, 150)
    )


def noisy(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound, sync_bound, host_bound))(r, s)
    return f"noisy host, {name}", replace(spec, spread=0.5, kernel_spread=0.08, steps=10)


def near_loader(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "a loader that nearly keeps up", replace(slow_loader(r, s, r.uniform(0.95, 1.2), 0.25), steps=12)


def hiccups(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound))(r, s)
    return f"Python stops now and then, {name}", replace(spec, hiccup=(0.3, device_us(s) * 0.3), steps=10)


def scaled(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "a read between backward and optimizer", replace(
        s,
        unscale=True,
        reading=r.choice(("none", "end")),
        kernel_us=r.uniform(8, 40),
        optimizer="per_parameter",
    )


def gathered(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "parameters gathered in forward", replace(
        s, gather=True, reduce="buckets", reduce_us=device_us(s) * r.uniform(0.1, 0.5), ranks=4
    )


def undrained(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "work of earlier steps in the window", replace(
        s, drained=False, reading="none", operators=30, steps=9
    )


def one_thread(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound, host_bound))(r, s)
    return f"backward on the step's thread, {name}", replace(spec, autograd_thread=False)


def many_steps(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound, host_bound))(r, s)
    return f"many steps of varying work, {name}", replace(
        spec, steps=40, operators=r.randint(12, 25), vary=0.1
    )


def two_windows(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound, transfer_bound))(r, s)
    return f"two profiler windows, {name}", replace(spec, steps=9, restart=5)


def rough(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((launch_bound, sync_bound, compute_bound))(r, s)
    return f"scattered latencies, {name}", replace(spec, rough=6.0, queue=r.choice((500, 1024, 2000)))


def masks(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "sizes read in forward", replace(
        s, reading="nonzero", many=r.randint(8, 30), kernel_us=r.uniform(8, 30)
    )


def saves(r: Draw, s: Spec) -> tuple[str, Spec]:
    named = Named("save_checkpoint", device_us(s) * r.uniform(0.1, 0.6), saves=r.randint(4, 12))
    return "a checkpoint every step", replace(s, named=(named,), reading=r.choice(("none", "end")))


def late(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((launch_bound, compute_bound, sync_bound))(r, s)
    return f"kernels start after their call, {name}", replace(spec, late=True, spread=0.3)


def several_graphs(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "graphs and an eager optimizer", replace(
        s,
        graph=True,
        graphs=r.randint(2, 8),
        kernel_us=r.uniform(3, 40),
        optimizer="per_parameter",
        parameters=12,
    )


def inference(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound, transfer_bound, sync_bound))(r, s)
    return f"inference, {name}", replace(spec, inference=True)


def synthetic(r: Draw, s: Spec) -> tuple[str, Spec]:
    name, spec = r.choice((compute_bound, launch_bound))(r, s)
    return f"no loader, {name}", replace(spec, synthetic=True)


def phases(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "every phase synchronised", replace(s, reading="phases", kernel_us=r.uniform(8, 40))


def copy_thread(r: Draw, s: Spec) -> tuple[str, Spec]:
    share = r.choice((0.1, 0.5, 1.5))
    size = int(device_us(s) * share * GPUS[s.gpu].rate * 1000)
    return "a thread copies one batch ahead", replace(
        s, prefetcher=True, copy_thread=True, copies=(size, 512), reading=r.choice(("none", "end"))
    )


HARDER = (
    few_steps,
    bursty,
    side_streams,
    accumulation,
    evaluation,
    two_devices,
    runs_ahead,
    noisy,
    near_loader,
    hiccups,
    scaled,
    gathered,
    undrained,
    one_thread,
    many_steps,
    two_windows,
    rough,
    masks,
    saves,
    late,
    several_graphs,
    inference,
    synthetic,
    phases,
    copy_thread,
)
