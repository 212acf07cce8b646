"""All that is fuzzed, one after the other: run files, traces, and what else is read back.

    python -m tests.fuzz --minutes 30 [--seed 0] [--workers 1] [--keep DIR]

Each says how many cases it had, the slowest and the largest; the exit status is 1 at any failure, and --keep
has its files. Run files and traces take most of the time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests import fuzzing
from tests.importers.fuzz import FUZZ as TRACES
from tests.record.fuzz import FUZZ as RECORDS
from tests.run.fuzz import FUZZ as RUNS

SHARES = ((RUNS, 0.5), (TRACES, 0.4), (RECORDS, 0.1))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("found"))
    args = parser.parse_args()
    status = 0
    for fuzz, share in SHARES:
        print(f"{fuzz.module}, seed {args.seed}, at most {fuzz.memory >> 20} MiB:", flush=True)
        records = fuzzing.run(fuzz, fuzzing.FOR_EVER, args.seed, args.workers, args.minutes * 60 * share)
        status |= fuzzing.report(fuzz, records, fuzzing.FOR_EVER, args.seed, args.keep)
    return status


if __name__ == "__main__":
    sys.exit(main())
