"""A sink for output, in memory."""

from __future__ import annotations


class Pieces:
    """Keeps output like a run file."""

    failed: str | None = None

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.number = 0
        self.events: list[str] = []

    def output(self, t_ns: int, data: bytes) -> None:
        self.number += 1
        self.pieces[self.number] = data

    def drop_output(self, first: int, last: int) -> None:
        assert all(number in self.pieces for number in range(first, last + 1)), "each is dropped once"
        for number in range(first, last + 1):
            del self.pieces[number]

    def event(self, t_ns: int, kind: str, *_: object, **__: object) -> None:
        self.events.append(kind)
