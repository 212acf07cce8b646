"""Damaged traces through the whole engine: each ends in a result that says what was lost, or one TraceError.

    python -m tests.importers.fuzz --count 10000 [--minutes M] [--seed 0] [--workers 2] [--keep DIR]
    python -m tests.importers.fuzz --case 123 --write DIR

How they are run: tests/fuzzing.py. Prints a summary and every failure; the exit status is 1 at any.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from profiler.analysis.trace import steps
from profiler.analysis.trace.breakdown import partition
from profiler.analysis.trace.joined import Joined
from profiler.errors import TraceError
from profiler.importers import kineto
from profiler.rules.trace.diagnosis import diagnose
from profiler.trace.model import Trace
from tests import fuzzing
from tests.importers.healthy import healthy
from tests.importers.mutations import case


def examine(path: Path) -> str:
    """The word for how a file ended: "result", "noted" (a result that says what is missing), "error".

    Anything else, AssertionError for a broken promise included, is raised.
    """
    try:
        traces = kineto.load(path)
        told = diagnose(traces, path.name).to_json()
    except TraceError as error:
        assert str(error).strip() and "\n" not in str(error), "an error is one line"
        return "error"
    json.dumps(told, allow_nan=False).encode()
    assert traces, "no process and no error"
    for trace in traces:
        _columns(trace)
        _sums(trace)
    lost = any(trace.losses.any for trace in traces)
    assert not lost or told["notes"], "something was lost, and nothing says so"
    assert any(len(t.host) or len(t.device) or t.notes for t in traces), "an empty result without a word"
    return "noted" if told["notes"] else "result"


def _columns(trace: Trace) -> None:
    """What the model promises of every table."""
    for table in (trace.host, trace.device):
        assert (table.end >= table.start).all() and (np.diff(table.start) >= 0).all(), "rows out of order"
        assert ((table.name >= 0) & (table.name < len(trace.names))).all(), "a row without a name"
    threads = trace.host.thread
    assert ((threads >= 0) & (threads < len(trace.threads))).all(), "a row without a thread"
    for name in trace.names:
        name.encode()  # fit for a file and a screen


def _sums(trace: Trace) -> None:
    """The partition fills every window exactly."""
    joined = Joined(trace)
    found = partition.partition(joined, steps.find(joined))
    widths = found.windows[:, 1] - found.windows[:, 0]
    assert (found.ns.sum(axis=1) == widths).all() and (found.ns >= 0).all(), "a window is not filled exactly"


FUZZ = fuzzing.Fuzz("tests.importers.fuzz", case, healthy, examine, memory=1 << 30, addresses=3 << 29)


if __name__ == "__main__":
    sys.exit(fuzzing.main(FUZZ, __doc__ or ""))
