"""Rollback journals as SQLite writes them, also ones that it would never write."""

from __future__ import annotations

import struct

MAGIC = bytes.fromhex("d9d505f920a163d7")
PAGE, SECTOR, NONCE = 4096, 512, 12345


def journal(data: bytes, named: bytes = b"", pages: int = 1) -> bytes:
    """A journal that holds the first pages of `data`; `named`: the one it says it is part of."""
    out = MAGIC + struct.pack(">IIIII", pages, NONCE, len(data) // PAGE, SECTOR, PAGE)
    out = out.ljust(SECTOR, b"\0")
    for number in range(pages):
        page = data[number * PAGE:number * PAGE + PAGE]
        check = (NONCE + sum(page[i] for i in range(PAGE - 200, 0, -200))) & 0xFFFFFFFF
        out += struct.pack(">I", number + 1) + page + struct.pack(">I", check)
    if named:
        out += struct.pack(">I", 0x40000000 // PAGE + 1) + named
        out += struct.pack(">II", len(named), sum(named) & 0xFFFFFFFF) + MAGIC
    return out
