"""What commands share: strict JSON, tables, and progress on a terminal."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import json
import math
import os
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TextIO

from profiler.errors import one_line
from profiler.units import NBSP, format_time


def plain(value: Any) -> Any:
    """`value` in the types JSON has: dataclasses become objects, NaN and infinities null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays, without importing it
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return str(value)


def shown(value: Any) -> Any:
    """`plain`, its texts fit for a terminal: a run may come from anybody, and hold escape sequences."""
    value = plain(value)
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {shown(key): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list) else value


def print_json(value: Any) -> None:
    """One JSON object on stdout and nothing else. A stream that is not UTF-8 gets ASCII: JSON is neither.

    What a terminal might obey is escaped, so that the JSON holds what it held.
    """
    unicode = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    text = json.dumps(plain(value), allow_nan=False, indent=2, ensure_ascii=not unicode)
    print(_BEYOND_ASCII.sub(lambda found: _escaped(found[0]), text))


_BEYOND_ASCII = re.compile(r"[^ -~\n]")


def _escaped(c: str) -> str:
    """A character of JSON. One that is not printable is inside a string, where any may be escaped."""
    seen = c.isprintable() and unicodedata.category(c) not in ("Mn", "Me")
    return c if seen else json.dumps(c)[1:-1]


def print_table(rows: Sequence[Sequence[str]], header: Sequence[str] = (), right: Sequence[int] = (),
                indent: str = "", out: TextIO | None = None) -> None:
    """Aligned columns; those whose numbers are in `right` end at the right edge."""
    every = [tuple(header), *rows] if header else list(rows)
    if not every:
        return
    widths = [max(len(row[k]) for row in every if k < len(row)) for k in range(max(map(len, every)))]
    for row in every:
        cells = [c.rjust(widths[k]) if k in right else c.ljust(widths[k]) for k, c in enumerate(row)]
        print((indent + "  ".join(cells)).rstrip(), file=out or sys.stdout)


def fitted(text: str, width: int) -> str:
    """`text` in at most `width` letters: what is left out is in the middle, for ends tell names apart."""
    if len(text) <= width:
        return text
    tail = width // 2
    return f"{text[:width - tail - 1]}\u2026{text[-tail:]}"


def duration(seconds: float) -> str:
    """How long something takes, in whole seconds and at least one: 8 s, 12 min 30 s."""
    return format_time(max(1, round(seconds)) * 1e9).replace(".0", "").removesuffix(f"{NBSP}0{NBSP}s")


def _columns(stream: TextIO) -> int:
    """The width of a terminal in letters; 80 where it does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):  # io.UnsupportedOperation is both
        return 80


class Progress:
    """A bar on stderr while a terminal is there to see it; otherwise silent.

        with Progress("Verifying", total=6) as bar:
            bar.update(1, "pair 1 of 3")
    """

    def __init__(self, title: str, total: float, stream: TextIO | None = None) -> None:
        self.title, self.total = title, total
        self.stream = stream or sys.stderr
        self.shown = self.stream.isatty()
        self.width = 0

    def update(self, done: float, text: str = "") -> None:
        if not self.shown:
            return
        share = min(max(done / self.total, 0.0), 1.0) if self.total > 0 else 0.0
        filled = round(24 * share)
        line = f"{self.title} [{'#' * filled}{'.' * (24 - filled)}] {100 * share:3.0f} % {one_line(text)}"
        line = line[:_columns(self.stream) - 1].rstrip()  # one that is wrapped would not be written over
        self._write("\r" + line.ljust(self.width))
        self.width = len(line)

    def clear(self) -> None:
        """Take the bar away: what is printed next begins on a clean line."""
        if self.shown and self.width:
            self._write("\r" + " " * self.width + "\r")
            self.width = 0

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone, the work goes on
            getattr(self.stream, "own", self.stream.write)(text)
            self.stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.clear()
