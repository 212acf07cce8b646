"""Large traces, made by repeating a real one in Kineto's own writing.

    python tests/bench/trace_big.py SOURCE.json.gz OUT.json --events 1000000

Every copy is later in time and has its own correlations, ids and step numbers, as if the training had gone
on; what the source says once (metadata, its properties) is written once. A name that ends in `.gz` is
compressed.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

PAUSE_US = 100  # between the last event of a copy and the first of the next
# Integers that grow with every copy: the time (its whole microseconds), ids that join events, and the step's
# number. Flow ids join as correlations do.
_GROWING = re.compile(
    rb'("ts":\s*"?)(\d+)'
    rb'|("(?:correlation|External id|external id|Ev Idx|Record function id|Sequence number|Python id|'
    rb'Python parent id|Python module id|id|wait_on_cuda_event_record_corr_id)":\s*"?)(\d+)'
    rb'|("ProfilerStep\s?#\s?)(\d+)')


class _Document(msgspec.Struct):
    traceEvents: msgspec.Raw


class _Head(msgspec.Struct):
    ph: str = ""
    cat: str | None = None
    ts: float | str = 0.0
    dur: float = 0.0


@dataclass(frozen=True)
class Repeat:
    """A trace ready to be repeated: copy `k` is `template` filled with `values` plus `k` times `growth`."""

    head: bytes      # up to the opening bracket of the events, and the events that come once
    tail: bytes      # from the closing bracket on
    template: bytes  # the repeated events, separated by commas, with %d for every growing integer
    values: tuple[int, ...]
    growth: tuple[int, ...]
    events: int      # in one copy

    def copies(self, count: int) -> Iterator[bytes]:
        """The text of a document with `count` copies, piece by piece."""
        yield self.head
        for k in range(count):
            yield self.template % tuple(v + k * g for v, g in zip(self.values, self.growth, strict=True))
            yield b",\n  " if k + 1 < count else self.tail


def prepare(path: Path) -> Repeat:
    """Read `path` (plain or gz) for repetition."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    array = bytes(msgspec.json.decode(data, type=_Document).traceEvents)
    at = data.index(array)
    once, repeated, starts, ends = [], [], [], []
    for raw in msgspec.json.decode(array, type=list[msgspec.Raw]):
        event = msgspec.json.decode(raw, type=_Head, strict=False)
        if event.ph == "M" or event.cat == "Trace" or (event.ph == "i" and event.cat is None
                                                       and b"[memory]" not in bytes(raw)):
            once.append(bytes(raw))
            continue
        repeated.append(bytes(raw))
        starts.append(float(event.ts))
        ends.append(float(event.ts) + event.dur)
    text = b",\n  ".join(repeated)
    found = list(_GROWING.finditer(text))
    kinds = [cast(int, m.lastindex) // 2 - 1 for m in found]  # 0 time, 1 id, 2 step
    values = [int(m.group(cast(int, m.lastindex))) for m in found]
    numbers = [v for v, kind in zip(values, kinds, strict=True) if kind == 2] or [0]
    ids = max((v for v, kind in zip(values, kinds, strict=True) if kind == 1), default=0)
    grow = (int(max(ends) - min(starts)) + PAUSE_US, ids + 1, max(numbers) - min(numbers) + 1)
    pieces, last = [], 0
    for match in found:
        pieces += [text[last:match.start(cast(int, match.lastindex))].replace(b"%", b"%%"), b"%d"]
        last = match.end()
    pieces.append(text[last:].replace(b"%", b"%%"))
    first = data[:at] + b"[\n  " + b"".join(raw + b",\n  " for raw in once)
    return Repeat(first, b"\n  ]" + data[at + len(array):], b"".join(pieces), tuple(values),
                  tuple(grow[kind] for kind in kinds), len(repeated))


def write(source: Path, out: Path, events: int) -> dict[str, Any]:
    """Write a trace of about `events` events to `out`; how many it has, and its bytes before compression."""
    repeat = prepare(source)
    count = max(1, round(events / repeat.events))
    size = 0
    with gzip.open(out, "wb", 6) if out.suffix == ".gz" else out.open("wb") as file:
        for piece in repeat.copies(count):
            size += file.write(piece)
    return {"events": count * repeat.events, "bytes": size, "copies": count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    args = parser.parse_args()
    made = write(args.source, args.out, args.events)
    print(f"{args.out}: {made['events']} events, {made['bytes'] / 1e6:.0f} MB, {made['copies']} copies")


if __name__ == "__main__":
    main()
