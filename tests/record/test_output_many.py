"""A program that prints a little all day: what is remembered of the pieces stays small."""

from __future__ import annotations

from profiler.record.output import GRAIN, HEAD, TAIL, Output


class Pieces:
    """A sink for output."""

    failed = None

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.number = 0

    def output(self, t_ns: int, data: bytes) -> None:
        self.number += 1
        self.pieces[self.number] = data

    def drop_output(self, first: int, last: int) -> None:
        assert all(number in self.pieces for number in range(first, last + 1)), "each is dropped once"
        for number in range(first, last + 1):
            del self.pieces[number]

    def event(self, *_: object, **__: object) -> None:
        pass


def test_many_small_pieces_of_output() -> None:
    sink = Pieces()
    output = Output(sink)  # type: ignore[arg-type]
    line = b"." * 199 + b"\n"
    lines = (HEAD + 6 * TAIL) // len(line)
    most = 0
    for turn in range(lines):
        output.add(line)
        output.flush(turn)
        most = max(most, len(output._tail))
    assert most <= 2 * TAIL // GRAIN + 100
    kept = sum(map(len, sink.pieces.values()))
    assert TAIL + HEAD <= kept <= HEAD + 2 * TAIL + len(line)
    assert kept + output.cut == lines * len(line)
    assert max(sink.pieces) == sink.number, "the newest stays: numbers go on from it"
