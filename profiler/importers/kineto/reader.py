"""A document's events in chunks, and what is written before and after their list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from profiler.errors import TraceError
from profiler.importers.kineto import decode
from profiler.importers.kineto.files import Document
from profiler.importers.kineto.repair import repair
from profiler.importers.kineto.tally import Tally

LONGEST = 64 << 20  # bytes of one event, or of what is around the list
_SMALL = 1 << 16    # bytes of a top-level value that is kept
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_WANTED = ("deviceProperties", "distributedInfo")
_SEPARATOR = re.compile(rb'\}\s*,\s*\{\s*"[^"\\]{1,20}"')
_SPACE = b" \t\r\n\0"
_COMMA = re.compile(rb"[\s,]*")
_PATIENCE = 8 << 20  # bytes without the end of an event after which it is taken to be lost
_PARTIAL = 8        # values that are given up at the end of what is around the list


class Reader:
    """Iterates over lists of event objects. Memory is that of a chunk, whatever the file has.

    `exact` asks for times as text from the next chunk on; `again` decodes the current chunk anew.
    `begun`: the document starts inside the list; `continued`: it ends inside it, after an event.
    """

    def __init__(self, document: Document, tally: Tally, *, begun: bool = False,
                 continued: bool = False) -> None:
        self.name = document.name
        self.tally = tally
        self.exact = False
        self.salvaged = False   # some text was no valid JSON
        self.around = (b"", b"")  # text before and after the list
        self._document = document
        self._begun = begun
        self._bare = continued  # no end of the list is to be expected
        self._chunk = b""
        self._separator = b""
        self._wait = 0          # bytes of text before which there is no use in trying
        self._at = 0            # of the rest, in the text

    def __iter__(self) -> Iterator[list[Any]]:
        blocks = self._document.blocks
        rest = b"" if self._begun else self._open(blocks)
        for block in blocks:
            rest = self._start(rest + block)
            decoded, used = self._next(rest)
            self._at += used
            rest = rest[used:]
            if decoded.events:
                yield decoded.events
            if decoded.tail is not None:
                self._close(decoded.tail + rest, blocks)
                return
            if len(rest) > LONGEST:
                self.tally.truncated_at = self._at
                return
        yield self._last(self._start(rest))

    def again(self) -> list[Any]:
        """The current chunk once more, with the present setting of `exact`."""
        unused = Tally()
        try:
            return decode.attempt(self._chunk, unused, self.exact).events
        except decode.Failure:
            return decode.salvage(self._chunk, unused, self.exact, last=True).events

    def _open(self, blocks: Iterator[bytes]) -> bytes:
        """Read up to the list of events; what follows its bracket."""
        text, searched, blank = b"", 0, 0
        for block in blocks:
            text += block
            if not searched:
                blank += len(text)
                text = text.lstrip(_SPACE)
                blank -= len(text)
            start = text[:1]
            if start == b"[":
                self._bare = True
                self._at = blank + 1
                return text[1:]
            if start not in (b"{", b""):
                break
            found = _LIST.search(text, max(0, searched - 64))
            if found:
                self.around = (text[:found.start()], b"")
                self._at = blank + found.end()
                return text[found.end():]
            searched = len(text)
            if blank + searched > LONGEST:
                break
        stripped = text.strip(_SPACE)
        if not stripped and self._document.source.damaged:
            raise TraceError(f"{self.name} is damaged: {self._document.source.damaged}", "Copy it again.")
        if not stripped and blank > LONGEST:
            raise TraceError(f"{self.name} is no trace: it begins with {blank} blanks or zeros", EXPECTED)
        if not stripped:
            raise TraceError(f"{self.name} is empty", "The writer may have been stopped; record it again.")
        if stripped[:1] != b"{":
            what = stripped[:30].decode("utf-8", "replace")
            raise TraceError(f"{self.name} is no trace: it begins with {what!r}", EXPECTED)
        raise TraceError(f"{self.name} holds no list of traceEvents", EXPECTED)

    def _start(self, text: bytes) -> bytes:
        """Without the comma that a chunk before it could not see yet."""
        start = text.lstrip(_SPACE + b",")
        self._at += len(text) - len(start)
        return start

    def _next(self, text: bytes) -> tuple[decode.Decoded, int]:
        """What `text` holds up to its last separator, and the bytes used."""
        if len(text) < self._wait:
            return decode.Decoded([]), 0
        if not self._separator or text.rfind(self._separator) < 0:
            self._separator = usual_separator(text)
        cut = text.rfind(self._separator) + 1 if self._separator else 0
        if not cut:
            self._wait = 2 * len(text)
            return decode.Decoded([]), 0
        self._wait = 0
        try:
            return self._attempt(text, cut)
        except decode.Failure as error:
            damaged = not decode.is_cut(error)
        if not damaged:  # the separator lies inside an event
            try:
                if end := decode.whole_events(text):
                    return self._attempt(text, end)
            except decode.Failure:
                damaged = True
            if not damaged and len(text) < _PATIENCE:
                self._wait = 2 * len(text)
                return decode.Decoded([]), 0
        self._chunk = text[:cut]
        self.salvaged = True
        return self._used(decode.salvage(self._chunk, self.tally, self.exact), text)

    def _attempt(self, text: bytes, end: int) -> tuple[decode.Decoded, int]:
        self._chunk = text[:end]
        return self._used(decode.attempt(self._chunk, self.tally, self.exact), text)

    def _used(self, decoded: decode.Decoded, text: bytes) -> tuple[decode.Decoded, int]:
        """With the comma, which is part of what follows once the list has ended."""
        comma = _COMMA.match(text, len(self._chunk))
        return decoded, comma.end() if comma and decoded.tail is None else len(self._chunk)

    def _last(self, text: bytes) -> list[Any]:
        """What is left at the end of the text: the last events, and mostly the end of the list."""
        self._chunk = text = text.rstrip(_SPACE + b",")
        try:
            decoded = decode.attempt(text, self.tally, self.exact)
        except decode.Failure:
            self.salvaged = True
            decoded = decode.up_to_cut(text, self.tally, self.exact) or decode.salvage(
                text, self.tally, self.exact, last=True)
        if decoded.tail is not None:
            self.around = (self.around[0], decoded.tail)
        elif decoded.cut is not None or not self._bare:
            self.tally.truncated_at = self._at + (len(text) if decoded.cut is None else decoded.cut)
        return decoded.events

    def _close(self, text: bytes, blocks: Iterator[bytes]) -> None:
        for block in blocks:
            if len(text) < LONGEST:
                text += block
        self.around = (self.around[0], text)


EXPECTED = "Expected is what torch.profiler exports: JSON with a list of traceEvents."


def top(around: tuple[bytes, bytes], tally: Tally) -> dict[str, Any]:
    """Top-level values of a file, small ones, from the text around its list of events."""
    return _values(around[0], tally) | _values(around[1], tally)


def _values(text: bytes, tally: Tally) -> dict[str, Any]:
    inner = text.strip(_SPACE).removeprefix(b"{").strip(_SPACE + b",")
    mended = repair(inner).text
    candidates = [inner, inner.removesuffix(b"}"), mended, mended.removesuffix(b"}")]
    while len(candidates) < _PARTIAL + 4:
        candidates.append(candidates[-1].rpartition(b",")[0])
    for number, candidate in enumerate(candidates):
        try:
            raws = msgspec.json.decode(b"{%b}" % candidate, type=dict[str, msgspec.Raw])
            values = {k: msgspec.json.decode(v) for k, v in raws.items()
                      if k in _WANTED or len(bytes(v)) <= _SMALL}
        except decode.Failure:
            continue
        if number > 3:
            break
        return values
    else:
        values = {}
    tally.notes.append("What is written beside the events could not be read, or not all of it.")
    return values


def usual_separator(text: bytes) -> bytes:
    """What mostly stands between two events of `text`, from brace to first key; empty for a single event."""
    counts = Counter(m.group() for m in _SEPARATOR.finditer(text))
    return counts.most_common(1)[0][0] if counts else b""
