"""Ways to damage a file below its structure: its text, its packing, its encoding."""

from __future__ import annotations

import gzip
import io
import random
import tarfile

TOKENS = [b"NaN", b"nan", b"inf", b"-inf", b"Infinity", b"1e400", b"null", b"[", b"]", b"{", b"}",
          b"[" * 2000, b'"', b"\\", b"\\u", b"\\ud800", b",", b":", b"\x00", b"\x01", b"\n", b"\xf8",
          b"\xff\xfe", b"\xef\xbb\xbf", b"-", b"0x1f", b"1" * 5000, b"//", b"/*", b"'", b"{}", b"[],",
          b'"ts":', b'"traceEvents": [', b'"args": {', b"\x1f\x8b\x08\x00"]


def flip(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 3, 30, 1000))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut(data: bytes, rng: random.Random) -> bytes:
    """A piece is missing: the end, the start, or from the middle."""
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return rng.choice((data[:a], data[b:], data[:a] + data[b:], data[:-rng.randint(1, 8)]))


def insert(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 5, 50))):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(TOKENS) + data[at:]
    return data


def repeat(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    b = min(b, a + 20_000)
    return data[:b] + data[a:b] * rng.choice((1, 5)) + data[b:]


def replace(data: bytes, rng: random.Random) -> bytes:
    """One of the writer's own marks everywhere as another."""
    old = rng.choice((b'"X"', b'"ts"', b'"dur"', b'"args"', b'"name"', b"0", b".", b'"', b"},", b":", b"{",
                      b"e"))
    return data.replace(old, rng.choice((b"", b'"X"', b'"ts"', b"9", b"-", b'""', b"}", b"NaN", b"[")),
                        rng.choice((-1, 1, 100)))


TEXT = (flip, cut, insert, repeat, replace)


def zipped(data: bytes, rng: random.Random) -> bytes:
    """Compressed, and damaged after."""
    half = len(data) // 2
    packed = rng.choice((lambda: gzip.compress(data, 1), lambda: gzip.compress(gzip.compress(data, 1), 1),
                         lambda: gzip.compress(data[:half], 1) + gzip.compress(data[half:], 1)))()
    return rng.choice((lambda d, r: d, flip, cut, insert))(packed, rng)


def tarred(data: bytes, rng: random.Random) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=rng.choice(("w", "w:gz"))) as tar:
        for rank in range(rng.choice((1, 2, 3))):
            member = data if rank != 1 else rng.choice((data, b"", b"x", data[:len(data) // 2]))
            entry = tarfile.TarInfo(rng.choice((f"rank{rank}.json", f"a/b_{rank}.json", "same.json")))
            entry.size = len(member)
            tar.addfile(entry, io.BytesIO(member))
    return rng.choice((lambda d, r: d, flip, cut))(out.getvalue(), rng)


def coded(data: bytes, rng: random.Random) -> bytes:
    """Another encoding of the text."""
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32", "latin-1")),
                       "replace")


FILE = (zipped, tarred, coded)
