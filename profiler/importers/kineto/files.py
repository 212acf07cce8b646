"""From a path to plain UTF-8 text, block by block: whatever it is wrapped in, and however it ends."""

from __future__ import annotations

import codecs
import io
import queue
import tarfile
import threading
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from profiler.errors import TraceError
from profiler.importers.kineto.source import BLOCK, PATIENCE, Blocks, Source, opened

LAYERS = 4        # gz in tar in gz is three
_GZIP = b"\x1f\x8b"
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd",
           b"7z\xbc\xaf": "7-Zip", b"SQLite format 3": "SQLite"}
_PIECE = 1 << 14  # bytes of a member of a tar at a time
_QUEUE = 8        # blocks that the reading thread is ahead


@dataclass
class Document:
    """One JSON text. Its blocks can be read once, before the next document is asked for."""

    name: str
    source: Source
    blocks: Blocks


def documents(path: Path, source: Source) -> Generator[Document, None, None]:
    """Every text in a file: one, or those of a tar. To be closed; TraceError where it cannot be opened."""
    with opened(path, source) as blocks, closing(_ahead(blocks, source)) as ahead:
        yield from _unwrap(path.name, ahead, source, LAYERS)  # the thread ends before the file is closed


def _unwrap(name: str, blocks: Blocks, source: Source, layers: int) -> Iterator[Document]:
    """Take off one layer, by what the bytes say; names say nothing."""
    first = _at_least(blocks, 512)
    blocks = _chain(first, blocks)
    if first[:2] == _GZIP:
        if layers == 0:
            raise TraceError(f"{name} is compressed more than {LAYERS} times over", "Unpack it first.")
        with closing(_ahead(_gunzip(blocks, source), source)) as unpacked:
            yield from _unwrap(name, unpacked, source, layers - 1)
    elif first[257:262] == b"ustar":
        if layers == 0:
            raise TraceError(f"{name} is packed more than {LAYERS} times over", "Unpack it first.")
        yield from _members(name, blocks, source, layers - 1)
    else:
        for magic, what in _OTHERS.items():
            if first.startswith(magic):
                raise TraceError(f"{name} is no trace but a file of {what}",
                                 "A trace is JSON, plain or compressed by gzip, or a tar of such files.")
        yield Document(name, source, _bounded(_utf8(first, blocks), source))


def _members(name: str, blocks: Blocks, source: Source, layers: int) -> Iterator[Document]:
    try:
        with tarfile.open(fileobj=_File(blocks), mode="r|", bufsize=BLOCK) as tar:
            for member in tar:
                base = member.name.rpartition("/")[2]
                if not member.isfile() or base.startswith("."):
                    continue
                file = tar.extractfile(member)
                if file is not None:
                    yield from _unwrap(f"{name}:{member.name}", _member(file, source), source, layers)
    except tarfile.TarError as error:
        source.damaged = f"the archive is damaged ({error})"


def _member(file: IO[bytes], source: Source) -> Blocks:
    try:
        while block := file.read(min(BLOCK, _PIECE)):
            yield block
    except tarfile.TarError as error:  # the piece that is cut is lost
        source.damaged = f"the archive is damaged ({error})"


def _gunzip(blocks: Blocks, source: Source) -> Blocks:
    """All members one after the other. A cut or damaged stream ends early and says so in `source`."""
    unpack, members, given = zlib.decompressobj(31), 0, 0
    for block in blocks:
        data = block
        while data:
            if unpack.eof:
                data = data.lstrip(b"\0")  # padding of tapes and disks
                if not data:
                    break
                unpack, members = zlib.decompressobj(31), members + 1
            before = unpack.copy()
            try:
                text = unpack.decompress(data, BLOCK)
            except zlib.error as error:
                if members and "header" in str(error):
                    source.notes.append("Bytes after the end of the compressed text are no gzip: left out.")
                else:
                    source.damaged = f"the compressed text is damaged ({error})"
                    yield from _up_to_damage(before, data)
                return
            given += len(text)
            source.grew(given)
            if text:
                yield text
            data = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
    if not unpack.eof:
        source.damaged = "the compressed text is cut off"


def _up_to_damage(unpack: zlib._Decompress, data: bytes) -> Blocks:
    """What a failed call would have given before it failed."""
    for at in range(0, len(data), 64):
        try:
            yield unpack.decompress(data[at:at + 64])
        except zlib.error:
            return


def _utf8(first: bytes, blocks: Blocks) -> Blocks:
    """Without byte order mark, and UTF-16 as UTF-8."""
    if first.startswith(codecs.BOM_UTF8):
        next(blocks)
        return _chain(first[3:], blocks)
    wide = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}.get(first[:2], "")
    if not wide and len(first) >= 4 and 0 in first[:2] and (first[:1] in b"[{" or first[1:2] in b"[{"):
        wide = "utf-16-be" if first[0] == 0 else "utf-16-le"
    if not wide:
        return blocks
    decoder = codecs.getincrementaldecoder(wide)("replace")
    return (decoder.decode(block).encode("utf-8", "replace") for block in blocks)


def _bounded(blocks: Blocks, source: Source) -> Blocks:
    """Count the text, and stop what unpacks to far more than any trace does."""
    for block in blocks:
        source.unpacked += len(block)
        source.grew(source.unpacked)
        yield block


def _at_least(blocks: Blocks, size: int) -> bytes:
    first = b""
    for block in blocks:
        first += block
        if len(first) >= size:
            break
    return first


def _chain(first: bytes, blocks: Blocks) -> Blocks:
    if first:
        yield first
    yield from blocks


class _File(io.RawIOBase):
    """Blocks as a file that is read forwards."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, missing = [], size
        while missing:
            if not self._rest:
                self._rest = next(self._blocks, b"")
                if not self._rest:
                    break
            part, self._rest = self._rest[:missing], self._rest[missing:]
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def _ahead(blocks: Blocks, source: Source) -> Generator[bytes, None, None]:
    """The same blocks, made in a thread of their own: reading and unpacking run beside the decoding."""
    ready: queue.Queue[bytes | BaseException | None] = queue.Queue(_QUEUE)
    stop = threading.Event()

    def put(item: bytes | BaseException | None) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for block in blocks:
                if not put(block):
                    return
            put(None)
        except BaseException as error:  # raised again where the blocks are used
            put(error)

    thread = threading.Thread(target=work, name="trace reader", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = ready.get(timeout=PATIENCE)
            except queue.Empty:
                source.waiting()
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    except BaseException:
        source.closed = True  # or a thread that waits for a pipe would never end
        raise
    finally:
        stop.set()
        thread.join()
