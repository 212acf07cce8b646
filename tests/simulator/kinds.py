"""Kinds of jobs: a specification and a layout drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.simulator.actions import Loader
from tests.simulator.loop import Named, Spec
from tests.simulator.operators import GPUS

Draw = random.Random
Kind = Callable[[Draw, Spec], tuple[str, Spec]]


def base(r: Draw) -> Spec:
    """A healthy job of some size: compute takes most of the step, the host keeps ahead."""
    gpu = r.choice(tuple(GPUS))
    return Spec(
        gpu=gpu,
        family=r.choice(("transformer", "convolution", "recommender")),
        operators=r.randint(40, 110),
        kernel_us=r.uniform(45, 90),
        host_scale=r.uniform(0.8, 1.2),
        optimizer=r.choice(("foreach", "fused")),
        scalar=r.choice(("pinned", "pageable")),
        service_us=800.0,
        loader=Loader(r.choice((2, 4, 8)), 2),
        fetch_us=r.uniform(50, 140),
        copies=tuple([r.randint(400_000, 6_000_000)] + [512] * r.randint(0, 2)),
        memsets=r.choice((0, 0, 3, 6)),
        steps=r.randint(5, 10),
    )


def device_us(spec: Spec) -> float:
    """About how long the device computes a step."""
    return spec.operators * spec.kernel_us * 0.62 * 3.2 * spec.accumulate + spec.kernel_us * 12


def host_us(spec: Spec) -> float:
    """About how long the host launches a step."""
    optimizer = spec.parameters * 5 * 16 if spec.optimizer == "per_parameter" else 60
    return spec.host_scale * (spec.operators * 42 * spec.accumulate + optimizer)


def compute_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    reading = r.choice(("none", "end", "forward", "device_end", "event_end", "lagging"))
    return reading, replace(s, reading=reading)


def input_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    step = max(device_us(s), host_us(s))
    if r.random() < 0.4:
        return "no workers", replace(
            s, loader=Loader(0), service_us=step * r.uniform(0.5, 1.5), reading="end"
        )
    return "few workers", slow_loader(r, s, r.uniform(1.3, 2.4), 0.03)


def slow_loader(r: Draw, s: Spec, factor: float, spread: float) -> Spec:
    """Workers that together take `factor` times as long as the step without them."""
    workers = r.choice((1, 2, 3, 6))
    step = max(device_us(s), host_us(s)) * factor
    loader = Loader(workers, r.choice((1, 2, 4)), int(1000 * step))
    return replace(
        s, loader=loader, reading="end", before=24, service_us=step * workers, service_spread=spread
    )


def transfer_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    memory = r.choice(("pinned", "pageable"))
    rate = GPUS[s.gpu].rate * (1.0 if memory == "pinned" else 0.3)
    size = int(device_us(s) * r.uniform(0.3, 0.8) * rate * 1000)
    return f"{memory}, same stream", replace(
        s, memory=memory, copies=(size, 2048), reading=r.choice(("end", "none", "device_end"))
    )


def launch_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    small = replace(
        s,
        kernel_us=r.uniform(1.5, 3.5),
        operators=r.randint(60, 120),
        host_scale=r.uniform(1.0, 2.0),
        copies=(20_000,),
        reading=r.choice(("end", "none", "device_end")),
    )
    if r.random() < 0.5:
        return "per-parameter optimizer", replace(
            small, optimizer="per_parameter", parameters=r.randint(20, 50)
        )
    return "tiny kernels", small


def sync_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    reading = r.choice(("many", "device_many"))
    return reading, replace(s, reading=reading, many=r.randint(8, 24), kernel_us=r.uniform(9, 16))


def host_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    name = r.choice(("evaluate_batch", "update_meters", "log_metrics", "save_checkpoint", "augment_on_host"))
    reading = r.choice(("none", "end"))
    us = device_us(s) * r.uniform(0.4, 1.6) + (device_us(s) if reading == "none" else 0)
    return f"{name}, reading {reading}", replace(s, named=(Named(name, us, spread=0.2),), reading=reading)


def allocator_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    how = r.choice(("retry", "empty_cache"))
    count = r.randint(8, 20) if how == "retry" else r.randint(20, 40)
    return how, replace(s, allocator=how, allocations=count, reading=r.choice(("none", "end")))


def communication_bound(r: Draw, s: Spec) -> tuple[str, Spec]:
    how = r.choice(("end", "buckets"))
    share = r.uniform(0.4, 0.8) if how == "end" else r.uniform(1.0, 1.8)
    return how, replace(
        s,
        reduce=how,
        reduce_us=device_us(s) * share,
        ranks=r.choice((2, 4, 8)),
        buckets=r.randint(5, 12),
        reading=r.choice(("end", "device_end", "none")),
    )


def overlapped(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "all-reduce overlapped", replace(
        s, reduce="buckets", reduce_us=device_us(s) * r.uniform(0.15, 0.3), ranks=2, buckets=r.randint(6, 12)
    )


def hidden(r: Draw, s: Spec) -> tuple[str, Spec]:
    if r.random() < 0.5:
        size = int(device_us(s) * 0.4 * GPUS[s.gpu].rate * 1000)
        return "copies hidden by a prefetcher", replace(s, prefetcher=True, copies=(size, 512))
    workers = r.choice((2, 4))
    return "loader hidden by compute", replace(
        s, loader=Loader(workers, 2), service_us=device_us(s) * workers * 0.8
    )


def cuda_graph(r: Draw, s: Spec) -> tuple[str, Spec]:
    return "", replace(s, graph=True, kernel_us=r.uniform(15, 50))


def two_at_once(r: Draw, s: Spec) -> tuple[str, Spec]:
    first, second = r.sample(
        (input_bound, transfer_bound, communication_bound, allocator_bound, host_bound), 2
    )
    one, with_one = first(r, s)
    two, with_both = second(r, with_one)
    return f"{first.__name__} {one} and {second.__name__} {two}", with_both


LIKE = (
    compute_bound,
    input_bound,
    transfer_bound,
    launch_bound,
    sync_bound,
    host_bound,
    allocator_bound,
    communication_bound,
    overlapped,
    hidden,
    cuda_graph,
    two_at_once,
)
