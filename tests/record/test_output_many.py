"""A program that prints a little all day: what is remembered of the pieces stays small."""

from __future__ import annotations

from profiler.record.output import GRAIN, HEAD, TAIL, Output
from tests.record.pieces import Pieces


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
