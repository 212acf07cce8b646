"""Say what works on this machine, what does not, and the fix.

Looks at the driver and GPUs, Python, torch, Qt, cores, memory, shared memory, disks
and limits. It imports none of the heavy packages and answers at once. The status is
always 0: nothing here is wrong with the command itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from profiler.cli._common import plain, print_json
from profiler.doctor import Check, look

MARKS = {"ok": "ok", "warning": "!", "error": "x", "absent": "-"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    found, gpus = look()
    if args.json:
        print_json({"schema": 1, "checks": plain(found), "gpus": gpus})
    else:
        _print(found)
    return 0


def _print(found: Sequence[Check]) -> None:
    width = max(len(check.name) for check in found)
    for check in found:
        print(f"{MARKS[check.state]:>2}  {check.name:<{width}}  {check.text}")
        if check.hint:
            print(f"    {'':<{width}}  {check.hint}.")
    counts = [(sum(check.state == state for check in found), word)
              for state, word in (("error", "wrong"), ("warning", "to know of"), ("absent", "not there"))]
    print()
    print(", ".join(f"{count} {word}" for count, word in counts if count) or "Everything is there")
