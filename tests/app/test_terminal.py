"""The output of a program as a terminal would show it."""

from __future__ import annotations

import pytest

from app.widgets.terminal import LINES, Terminal


def shown(*parts: bytes) -> list[str]:
    terminal = Terminal()
    for part in parts:
        terminal.feed(part)
    return terminal.lines


@pytest.mark.parametrize(("data", "lines"), [
    (b"a\r\nb\n", ["a", "b", ""]),
    (b"step 1\rstep 2\rstep 3", ["step 3"]),
    (b"long line\rab", ["abng line"]),
    (b"long line\r\x1b[Kab", ["ab"]),
    (b"abc\x08\x08X", ["aXc"]),
    (b"\x1b[31mred\x1b[0m", ["red"]),
    (b"\x1b]0;title\x07text", ["text"]),
    (b"one\ntwo\x1b[A\rONE\x1b[B\rTWO", ["ONE", "TWO"]),
    (b"a\tb", ["a       b"]),
    (b"\x1b[3Cx", ["   x"]),
    (b"abc\x1b[2K\rz", ["z"]),
    (b"\x00\x07bell\x7f", ["bell"]),
    (b"\xff\xfeok", ["\ufffd\ufffdok"]),
])
def test_what_stands_there(data: bytes, lines: list[str]) -> None:
    assert shown(data) == lines


@pytest.mark.parametrize("cut", range(1, 14))
def test_pieces_may_be_cut_anywhere(cut: int) -> None:
    data = "a\x1b[31mm\u00fc\u20acz\x1b[0m".encode()
    assert shown(data[:cut], data[cut:]) == ["am\u00fc\u20acz"]


def test_a_progress_bar_changes_only_its_line() -> None:
    terminal = Terminal()
    terminal.feed(b"first\nsecond\n10 %")
    terminal.taken()
    terminal.feed(b"\r20 %")
    assert terminal.first_changed == 2
    assert terminal.last == "20 %"
    assert terminal.count == 3


def test_an_endless_output_keeps_its_end() -> None:
    terminal = Terminal()
    for start in range(0, 3 * LINES, 1000):
        terminal.feed(b"".join(b"line %d\n" % i for i in range(start, start + 1000)))
    assert len(terminal.lines) <= LINES + 1
    assert terminal.count == 3 * LINES
    assert terminal.lines[-2] == f"line {3 * LINES - 1}"


def test_a_line_without_end_is_bounded() -> None:
    assert len(shown(b"x" * 100_000)[0]) <= 20_000


def test_an_empty_terminal() -> None:
    terminal = Terminal()
    assert (terminal.count, terminal.last) == (0, "")
