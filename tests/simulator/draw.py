"""A job and the layout of its file, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulator.harder import HARDER
from tests.simulator.kinds import LIKE, Kind, base
from tests.simulator.layout import Layout
from tests.simulator.loop import Spec

KINDS = (*LIKE, *HARDER)


def draw(seed: int, kind: Kind | None = None, size: float = 1.0) -> tuple[str, str, Spec, Layout]:
    """Kind, variant, job and layout of a seed. `size` scales the number of operators."""
    r = random.Random(seed)
    chosen = kind or KINDS[seed % len(KINDS)]
    start = base(r)
    variant, spec = chosen(r, replace(start, operators=int(start.operators * size)))
    old = spec.gpu == "V100" and r.random() < 0.6
    times = (
        r.choice(("whole", "base"))
        if spec.gpu == "V100"
        else r.choice(("base", "base", "base", "text", "epoch"))
    )
    hip = not old and r.random() < 0.1
    layout = Layout(
        old=old,
        times=times,
        syncs=not old and not hip and r.random() < 0.4,
        annotations=r.random() < 0.7,
        python=not old and r.random() < 0.3,
        flows=r.random() < 0.8,
        driver=r.choice(("none", "none", "nested", "alone")),
        stream_text=old,
        ranks=spec.ranks,
        records=r.random() < 0.8,
        helper=not old and r.random() < 0.2,
        hip=hip,
        first_device=r.choice((0, 0, 0, 3)),
        duplicates=r.random() < 0.1,
        lost=r.choice((0.0, 0.0, 0.0, 0.004)),
        offset_us=r.randint(100_000_000_000, 1_900_000_000_000),
    )
    return chosen.__name__, variant, spec, layout
