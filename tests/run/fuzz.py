"""Damaged and hostile run files through all that reads them: each ends in a result or in one RunError.

    python -m tests.run.fuzz --count 10000 [--minutes M] [--seed 0] [--workers 2] [--keep DIR]
    python -m tests.run.fuzz --case 123 --write DIR

How they are run: tests/fuzzing.py. Prints a summary and every failure; the exit status is 1 at any.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from app.live.series import Intervals, to_curve
from app.recents import read_one
from app.run_facts import read_facts
from profiler.cli._common import shown
from profiler.cli._diagnosis import print_diagnosis
from profiler.cli._traces import analysed
from profiler.errors import RunError, TraceError
from profiler.report import html
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests import fuzzing
from tests.run.healthy import healthy
from tests.run.mutations import case
from tests.run.planned import read_all

MEMORY = 1 << 29  # of a file of at most some ten MB; the largest seen took 280 MiB
ELEMENTS = """
    html head meta title style body main header footer section article div span p b i em strong small br hr
    h1 h2 h3 h4 ul ol li dl dt dd table thead tbody tfoot tr th td caption pre code details summary a svg g
    rect line path polyline polygon text tspan circle defs pattern clippath figure figcaption time abbr
    colgroup col use symbol"""
ALLOWED = frozenset(ELEMENTS.split())


def examine(path: Path) -> str:
    """The word for how a file ended: "result", "error", or "some" where a part of it could be read.

    Anything else, AssertionError for a broken promise included, is raised.
    """
    before = _digest(path)
    parts: tuple[Callable[[Path], object], ...] = (read_all, _window, _told, _report)
    words = {_ended(part, path) for part in parts}
    read_one(path)  # gives None for what it cannot read
    assert _digest(path) == before, "the file was written to"
    words.add(_ended(analysed, path))  # this one may store its result in the run
    for beside in path.parent.glob(path.name + "-*"):  # the index of a file that says it has a -wal
        beside.unlink()
    return words.pop() if len(words) == 1 else "some"


def _ended(part: Callable[[Path], object], path: Path) -> str:
    try:
        part(path)
    except (RunError, TraceError) as error:
        assert str(error).strip() and str(error).isprintable(), "an error is one line"
        return "error"
    return "result"


def _window(path: Path) -> None:
    """What the live view and the status bar ask."""
    with Run.open(path) as run:
        read_facts(run)
        intervals = Intervals()
        for track in run.tracks:
            to_curve(run.series(track.id, points=400), run.start_ns, intervals.usual(run, track.id))
            run.latest(track.id)


def _told(path: Path) -> None:
    with Run.open(path) as run:
        told: dict[str, Any] = diagnose(run).to_json()
    json.dumps(told, allow_nan=False)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print_diagnosis(shown(told), True)
    wild = {c for c in out.getvalue() if not c.isprintable() and c not in "\n\u00a0"}
    assert not wild, f"{wild} goes to the terminal"


class _Elements(HTMLParser):
    """Refuses what a report is not made of."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, f"<{tag}> in the report"
        for name, value in attrs:
            assert not name.startswith("on"), f"{name} of <{tag}> in the report"
            inside = (value or "").startswith("#")
            assert name not in ("href", "src") or inside, f"{name}={value} in the report"


def _report(path: Path) -> None:
    with Run.open(path) as run:
        text = html.render(run)
    text.encode("utf-8", "replace")
    parser = _Elements()
    parser.feed(text)
    parser.close()


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


FUZZ = fuzzing.Fuzz("tests.run.fuzz", case, healthy, examine, memory=MEMORY, addresses=4 * MEMORY)


if __name__ == "__main__":
    sys.exit(fuzzing.main(FUZZ, __doc__ or ""))
