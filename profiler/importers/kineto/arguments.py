"""Arguments of many events at once."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from profiler.importers.kineto import structs
from profiler.importers.kineto.repair import repair
from profiler.importers.kineto.tables import Part
from profiler.importers.kineto.tally import Tally
from profiler.importers.kineto.texts import Values, integers
from profiler.trace.model import NONE

_KINDS: tuple[type[msgspec.Struct], ...] = (
    structs.OperatorArgs, structs.CallArgs, structs.DeviceArgs, structs.SyncArgs, structs.MemoryArgs,
    structs.CollectiveArgs, structs.MetaArgs)
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(list[kind]) for kind in _KINDS}  # type: ignore[valid-type]
_AMOUNTS = {"bytes", "allocated", "reserved", "elements_in", "elements_out"}
_OLDER = {"external": ("old_external",), "dims": ("old_dims",)}  # spellings of older files
MOST = 1 << 50  # bytes or elements: a thousand times a device's memory; sums of many stay within 64 bits
_KEYS = {kind: {f.name: f'"{f.encode_name}"'.encode() for f in msgspec.structs.fields(kind)}
         for kind in _KINDS}


class Arguments:
    """`items[i]` are the arguments of event i as a struct of `kind`."""

    def __init__(self, events: list[Any], kind: type[msgspec.Struct], tally: Tally) -> None:
        self._tally = tally
        raws = [e.args for e in events]
        self._text = b"[%b]" % b",".join(raws)
        self._keys = _KEYS[kind]
        try:
            self.items = _DECODERS[kind].decode(self._text)
        except (msgspec.DecodeError, RecursionError):
            self.items = [_one(bytes(raw), kind, tally) for raw in raws]

    def __len__(self) -> int:
        return len(self.items)

    def has(self, name: str) -> bool:
        """Whether any event may have this argument: most columns are empty for a whole chunk."""
        return self._keys[name] in self._text

    def numbers(self, *names: str, dtype: DTypeLike = np.int64) -> Part:
        """Columns of numbers, NONE in a row that has none; without those that no event has."""
        part = self._columns(names, lambda values: integers(values, dtype))
        for name in _AMOUNTS & part.keys():
            wild = (part[name] < NONE) | (part[name] > MOST)
            if wild.any():
                part[name] = np.where(wild, NONE, part[name])
                self._tally.missing_values += int(wild.sum())
        return part

    def codes(self, values: Values, *names: str) -> Part:
        """The same of JSON texts, as their numbers."""
        return self._columns(names, lambda texts: np.array([values[bytes(t)] for t in texts], np.int32))

    def _columns(self, names: tuple[str, ...], column: Callable[[list[Any]], NDArray[Any]]) -> Part:
        """Each argument as a column, from its older spelling in the rows where it has none."""
        part: Part = {}
        for name in names:
            for spelling in (name, *_OLDER.get(name, ())):
                before = part.get(name)
                if (before is None or (before == NONE).any()) and self.has(spelling):
                    found = column(list(map(attrgetter(spelling), self.items)))
                    part[name] = found if before is None else np.where(before == NONE, found, before)
        return part

    def given(self, name: str) -> list[int]:
        """Events that have this argument, for arguments kept as JSON text."""
        values = map(attrgetter(name), self.items) if self.has(name) else ()
        return [i for i, v in enumerate(values) if bytes(v)]


def _one(text: bytes, kind: type[msgspec.Struct], tally: Tally) -> msgspec.Struct:
    decoder = _DECODERS[kind]
    try:
        one: msgspec.Struct = decoder.decode(b"[%b]" % text)[0]
        return one
    except (msgspec.DecodeError, RecursionError):
        mended = repair(text)
    try:
        one = decoder.decode(b"[%b]" % mended.text)[0]
    except (msgspec.DecodeError, RecursionError):  # no object, or beyond repair: the event stays without them
        tally.missing_values += text.strip() != b"null"
        return kind()
    tally.mended(mended)
    return one
