"""Text of events to event objects: fast where it is valid, event by event where it is not."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from profiler.importers.kineto.repair import repair, repair_endings, repair_numbers
from profiler.importers.kineto.structs import EVENTS, EXACT_EVENTS, Loose
from profiler.importers.kineto.tally import Tally

Failure = (msgspec.DecodeError, RecursionError)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_LOOSE = msgspec.json.Decoder(Loose)
_EVENT = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|id|args)"')
# Between events, perhaps with a comma too few or a stray bracket. Inside texts quotes have a backslash.
_BOUNDARY = re.compile(rb"\}[\s,\]]*(?=%b)" % _EVENT.pattern)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_OFFSET = re.compile(r"\(byte (\d+)\)$")
_AFTER = re.compile(rb"\s*(?:,\s*(?:\"|$)|\}|$)")  # what may follow the list of events
_NESTED = 8  # starts of events that are tried in one piece of text
_INSIDE = 3  # so many ends of events may lie inside one event
_RUN = 64  # events that are tried together once a chunk is damaged


class Decoded(NamedTuple):
    events: list[Any]
    tail: bytes | None = None  # what follows the list of events, where the list ended
    cut: int | None = None     # where an event begins that the text does not finish


def attempt(text: bytes, tally: Tally, exact: bool) -> Decoded:
    """Events of `text`, which begins inside the list.

    Raises msgspec.DecodeError or RecursionError for damaged text; nothing is counted then.
    """
    try:
        return Decoded(_parse(b"[%b]" % text, tally, exact))
    except msgspec.DecodeError as error:
        for end in _ends_of_list(text, error):
            try:
                return Decoded(_parse(b"[" + text[:end], tally, exact), text[end:])
            except msgspec.DecodeError:
                continue
        raise


def is_cut(error: BaseException) -> bool:
    """The text ended inside something."""
    return "truncated" in str(error)


def whole_events(text: bytes) -> int:
    """Index after the last event that `text`, valid as far as it goes, holds whole; 0 where it holds none."""
    depth = end = 0
    for match in _TOKEN.finditer(text):
        token = text[match.start()]
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
            if depth == 0:
                end = match.end()
            elif depth < 0:
                break  # the end of the list
    return end


def _parse(array: bytes, tally: Tally, exact: bool) -> list[Any]:
    decoder = EXACT_EVENTS if exact else EVENTS
    try:
        events = decoder.decode(array)
    except msgspec.ValidationError:
        events = []
        lost = 0
        for raw in _RAWS.decode(array):
            one = _one(bytes(raw), decoder, tally)
            events += one
            lost += not one
        tally.events += lost
    tally.events += len(events)
    return events


def _one(text: bytes, decoder: msgspec.json.Decoder[list[Any]], tally: Tally) -> list[Any]:
    """One event that is JSON, but perhaps not of the form of an event."""
    try:
        return decoder.decode(b"[%b]" % text)
    except msgspec.DecodeError:
        mended = repair(text)
    try:
        if mended.text != text:
            events = decoder.decode(b"[%b]" % mended.text)
            tally.mended(mended)
            return events
        event = _LOOSE.decode(text)
    except msgspec.DecodeError:
        tally.unreadable += 1
        return []
    if not isinstance(event.ph, str):
        tally.lose(event.name, "no phase")
    elif event.ph in ("X", "B", "E"):
        tally.lose(event.name, "a number beyond all bounds")
    return []


def _ends_of_list(text: bytes, error: msgspec.DecodeError) -> Iterator[int]:
    """Indices after the brackets that may have closed the list, when that is what `error` is about."""
    found = _OFFSET.search(str(error))
    if found is None or "trailing characters" not in str(error):
        return
    end = int(found.group(1))
    for _ in range(3):  # what follows the list may be brackets too
        end = text.rfind(b"]", 0, end) + 1
        if not end:
            return
        if _AFTER.match(text, end):
            yield end
        end -= 1


def up_to_cut(text: bytes, tally: Tally, exact: bool) -> Decoded | None:
    """The same where nothing is wrong but that the last event is not finished; None where more is."""
    end = whole_events(text)
    if text[end:].lstrip(b" \t\r\n,")[:1] == b"]" or len(_BOUNDARY.findall(text, end)) > _INSIDE:
        return None
    try:
        return Decoded(attempt(text[:end], tally, exact).events, None, end)
    except Failure:
        return None


def salvage(text: bytes, tally: Tally, exact: bool, last: bool = False) -> Decoded:
    """The same for damaged text: what can be mended is, what cannot is left out and counted.

    `last`: the text goes to the end of the file, so that an unfinished event is no damage but the cut.
    """
    numbers = repair_numbers(text)
    if numbers.missing:
        tally.mended(numbers)
        text = numbers.text
        try:
            return attempt(text, tally, exact)
        except Failure:
            pass
    result: list[Any] = []
    for events, tail, cut in _pieces(text, tally, exact, last):
        result += events
        if tail is not None or cut is not None:
            return Decoded(result, tail, cut)
    return Decoded(result)


def _pieces(text: bytes, tally: Tally, exact: bool, last: bool) -> Iterator[Decoded]:
    """Runs of events, then single ones where a run is damaged; in order."""
    bounds = [(m.start() + 1, m.end()) for m in _BOUNDARY.finditer(text)]
    starts = [0, *(b for _, b in bounds)]
    ends = [*(a for a, _ in bounds), len(text)]
    work = [(i, min(i + _RUN, len(starts))) for i in range(0, len(starts), _RUN)][::-1]
    while work:
        i, j = work.pop()
        try:
            yield attempt(text[starts[i]:ends[j - 1]], tally, exact)
        except Failure as error:
            if j - i == 1:
                unfinished = last and i == len(starts) - 1 and (is_cut(error) or text[-1:] not in b"]}")
                yield Decoded([], None, starts[i]) if unfinished else _last_resort(
                    text[starts[i]:ends[i]], tally, exact)
                continue
            found = _OFFSET.search(str(error))
            if found:
                at = bisect.bisect_right(starts, starts[i] + int(found.group(1)) - 1) - 1
            else:
                at = (i + j) // 2
            at = min(max(at, i), j - 1)
            work += [w for w in ((at + 1, j), (at, at + 1), (i, at)) if w[0] < w[1]]


def _last_resort(text: bytes, tally: Tally, exact: bool) -> Decoded:
    """One event that was not mended so far."""
    for mended in (repair(text), repair_endings(text)):
        try:
            decoded = attempt(mended.text, tally, exact)
        except Failure:
            continue
        tally.mended(mended)
        return decoded
    if text.strip(b" \t\r\n,]}"):
        tally.events += 1
        tally.unreadable += 1
    for start in [m.start() for m in _EVENT.finditer(text, 1)][:_NESTED]:
        try:  # the event has no end, and a whole one follows
            return attempt(text[start:], tally, exact)
        except Failure:
            continue
    return Decoded([])
