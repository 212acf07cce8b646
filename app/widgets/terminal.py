"""What a terminal would show of a program's output: carriage returns and erased lines are carried out.

Free of Qt. Colours and other escape sequences are dropped.
"""

from __future__ import annotations

import codecs
import re

LINES = 10_000  # kept
WIDEST = 20_000  # characters of a line
_TOKEN = re.compile(
    r"\x1b\[([0-9;?]*)([ -/]*)([@-~])"  # CSI
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC
    r"|\x1b[@-Z\\-_a-z0-9=>]"
    r"|[\x00-\x1f\x7f]"
    r"|[^\x00-\x1f\x7f]+"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|\][^\x07\x1b]{0,4096}\x1b?)?$")


class Terminal:
    """Feed it bytes; `lines` is what stands there. `first_changed` says from where on, until `taken`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.lines: list[str] = [""]
        self.dropped = 0  # lines gone from the top
        self.first_changed = 0
        self._row = self._column = 0
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def count(self) -> int:
        """Lines so far; an empty last one does not count."""
        return self.dropped + len(self.lines) - (not self.lines[-1])

    @property
    def last(self) -> str:
        """The newest line that has text."""
        return next((line.rstrip() for line in reversed(self.lines) if line.strip()), "")

    def taken(self) -> None:
        self.first_changed = len(self.lines)

    def feed(self, data: bytes) -> None:
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        if (unfinished := _UNFINISHED.search(text)) is not None:
            self._rest = text[unfinished.start():]
            text = text[:unfinished.start()]
        for token in _TOKEN.finditer(text):
            if token[3]:
                self._control(token[1], token[3])
            elif len(token[0]) == 1 and token[0] < " ":
                self._character(token[0])
            elif token[0][0] not in "\x1b\x7f":
                self._write(token[0])

    def _write(self, text: str) -> None:
        line = self.lines[self._row]
        if self._column > len(line):
            line = line.ljust(self._column)
        self.lines[self._row] = (line[:self._column] + text + line[self._column + len(text):])[:WIDEST]
        self._column = min(self._column + len(text), WIDEST)
        self._touch()

    def _character(self, character: str) -> None:
        if character == "\n":
            self._down()
            self._column = 0
        elif character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(0, self._column - 1)
        elif character == "\t":
            self._write(" " * (8 - self._column % 8))

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")
            self._touch()
        if len(self.lines) > LINES:
            drop = LINES // 10
            del self.lines[:drop]
            self.dropped += drop
            self._row -= drop
            self.first_changed = 0

    def _control(self, numbers: str, final: str) -> None:
        first = numbers.split(";")[0]
        n = min(int(first), LINES) if first.isdigit() else 0
        line = self.lines[self._row]
        if final == "K":
            kept = {1: " " * self._column + line[self._column:], 2: ""}
            self.lines[self._row] = kept.get(n, line[:self._column])
            self._touch()
        elif final == "A":
            self._row = max(0, self._row - max(1, n))
        elif final == "B":
            self._row = min(len(self.lines) - 1, self._row + max(1, n))
        elif final == "C":
            self._column = min(self._column + max(1, n), WIDEST)
        elif final == "D":
            self._column = max(0, self._column - max(1, n))
        elif final == "G":
            self._column = min(max(0, n - 1), WIDEST)

    def _touch(self) -> None:
        self.first_changed = min(self.first_changed, self._row)
