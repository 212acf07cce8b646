"""Standard streams as they are found: closed, narrow, full, or with nobody who reads."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from profiler.errors import harmless, one_line

# What our own texts hold beyond ASCII, where the terminal has no more than that.
_NARROW = {"\u00a0": " ", "\u2212": "-", "\u00d7": "x", "\u2192": "->", "\u00b0": "deg ", "\u00b5": "u"}


def prepare() -> None:
    """Make them safe to print to, whatever we were started with."""
    # A file of ours must not get the number of a stream that is closed: prints would go into the run.
    # These are closed again in a program that we start, which finds its streams as without us.
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a narrow code page must not end a command
            stream.reconfigure(errors="stepscope")
    sys.stdout, sys.stderr = _cleaned(sys.stdout), _cleaned(sys.stderr)


class Cleaned:
    """A stream whose terminal is told nothing by the texts that go through it, whoever wrote them.

    What a command prints may be from a file of a stranger, or the name of one: no escape sequence gets out.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(harmless(text, "\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def own(self, text: str) -> None:
        """Write what moves the cursor: a text of ours alone."""
        self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _cleaned(stream: TextIO) -> TextIO:
    return stream if isinstance(stream, Cleaned) else cast("TextIO", Cleaned(stream))


def say(text: str, hint: str = "") -> None:
    """A line for the user on stderr, with our name."""
    tell(f"stepscope: {text}. {hint}" if hint else f"stepscope: {text}")


def tell(text: str) -> None:
    """A line on stderr, wherever that still goes: a terminal may be closed while an experiment runs."""
    with contextlib.suppress(OSError, ValueError):
        print(one_line(text), file=sys.stderr, flush=True)


def drop_output() -> None:
    """Nothing more can go to stdout; flushing at exit must not complain again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start:error.end]
    return "".join(_NARROW.get(c, "?") for c in text), error.end


codecs.register_error("stepscope", _ascii)
