"""Generate labelled traces: python -m tests.simulator.make --seed 1 --count 24 -o DIR."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.simulator.draw import KINDS, draw
from tests.simulator.kinds import Kind
from tests.simulator.layout import text, write
from tests.simulator.machine import run
from tests.simulator.operators import GPUS
from tests.simulator.parts import program
from tests.simulator.timeline import lose
from tests.simulator.truth import tell


def make(
    seed: int, folder: Path, kind: Kind | None = None, size: float = 1.0, predict: bool = True
) -> dict[str, Any]:
    """Write one trace; its line of truth, without scenarios where there is no `predict`."""
    kind_name, variant, spec, layout = draw(seed, kind, size)
    job = program(spec, seed)
    timeline = run(job, record=True)
    lose(timeline, layout.lost, seed)
    path = folder / f"trace_{seed:04d}.json.gz"
    write(path, text(timeline, job, GPUS[spec.gpu], layout))
    return {
        "file": path.name,
        "kind": kind_name,
        "variant": variant,
        "seed": seed,
        "gpu": GPUS[spec.gpu].name,
        **tell(job, timeline, predict),
        "layout": vars(layout),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--kind", choices=[kind.__name__ for kind in KINDS])
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    kind = next((k for k in KINDS if k.__name__ == args.kind), None)
    with (args.out / "truth.jsonl").open("w") as lines:
        for seed in range(args.seed, args.seed + args.count):
            row = make(seed, args.out, kind)
            lines.write(json.dumps(row) + "\n")
            print(f"{row['file']} {row['kind']}: {row['accept']} {row['variant']}")


if __name__ == "__main__":
    main()
