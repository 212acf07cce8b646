"""Traces of torch.profiler (Kineto's form of Chrome's), plain or compressed, of one rank or several."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from profiler.errors import Cancelled, TraceError
from profiler.importers.kineto import reader, split
from profiler.importers.kineto.assemble import assemble
from profiler.importers.kineto.columns import Columns
from profiler.importers.kineto.files import Document, documents
from profiler.importers.kineto.reader import EXPECTED, Reader
from profiler.importers.kineto.source import Source, size
from profiler.importers.kineto.tally import Tally
from profiler.trace.model import Trace

_PEEK = 1 << 16
_MARKS = (b'"traceEvents"', b'"ph"', b'"deviceProperties"', b'"distributedInfo"', b'"baseTimeNanoseconds"')


def sniff(path: Path) -> bool:
    """Whether a file looks like a trace or an archive of them. Reads its beginning only; never raises."""
    try:
        with closing(documents(path, Source(path.name))) as found:
            for document in found:
                text = b""
                for block in document.blocks:
                    text += block
                    if len(text) >= _PEEK:
                        break
                if text.lstrip()[:1] in (b"{", b"[") and any(mark in text for mark in _MARKS):
                    return True
    except (TraceError, OSError):
        pass
    return False


def load(paths: Path | Sequence[Path], *, progress: Callable[[float], None] | None = None,
         cancel: Callable[[], bool] | None = None) -> list[Trace]:
    """Every process in the files, by rank: one in each file, or one in each member of a tar.

    `progress` is told the share read, in [0, 1]; `cancel` is asked between chunks. What is
    damaged is read as far as it goes, and the trace's `losses` and `notes` say what is missing.
    A file of several that cannot be read at all is named in the notes of the first trace.
    Raises TraceError when nothing can be read, Cancelled when `cancel` answers true.
    """
    paths = [paths] if isinstance(paths, Path) else list(paths)
    sources = [Source(path.name) for path in paths]
    total = sum(size(path) for path in paths)

    def watch() -> None:
        if cancel is not None and cancel():
            raise Cancelled("The import was stopped", "Nothing of it was kept.")
        if progress is not None and total:
            progress(min(sum(s.read for s in sources) / total, 1.0))

    for source in sources:
        source.waiting = watch
    traces: list[Trace] = []
    failed: list[TraceError] = []
    with _uncollected():
        for path, source in zip(paths, sources):
            try:
                with closing(_files(path, source, watch)) as files:
                    for read in files:
                        try:
                            traces.append(read())
                        except TraceError as error:
                            failed.append(error)
            except TraceError as error:
                failed.append(error)
            except OSError as error:
                what = f"{path} cannot be read to its end: {error.strerror}"
                failed.append(TraceError(what, "Copy it again."))
    if not traces:
        raise failed[0] if failed else TraceError("No trace is given", EXPECTED)
    traces.sort(key=lambda t: (t.rank is None, t.rank or 0, t.source))
    if failed:
        notes = (*traces[0].notes, *(f"Left out: {error}" for error in failed))
        traces[0] = dataclasses.replace(traces[0], notes=notes)
    return traces


def _files(path: Path, source: Source,
           watch: Callable[[], None]) -> Generator[Callable[[], Trace], None, None]:
    """What reads each trace in a file, to be called one after the other."""
    folder = path.parent.name
    if (quick := split.read(path, source, watch)) is not None:
        columns, around = quick
        yield lambda: assemble(path.name, f"{folder}/{path.name}", columns, reader.top(around, columns.tally))
        return
    with closing(documents(path, source)) as found:
        for document in found:
            yield partial(_read, document, f"{folder}/{document.name}", watch)


def _read(document: Document, path: str, watch: Callable[[], None]) -> Trace:
    tally = Tally()
    events, columns = Reader(document, tally), Columns(tally)
    split.fill(events, columns, watch)
    columns.finish()
    if document.source.damaged:
        tally.notes.append(f"The file is damaged: {document.source.damaged}.")
    tally.notes += document.source.notes
    return assemble(document.name, path, columns, reader.top(events.around, tally))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Millions of short-lived objects without cycles: the collector would look through them for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
