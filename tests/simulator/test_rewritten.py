"""Labelled traces written another way: their events say the same, and so must the engine."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from decimal import Decimal
from math import floor
from pathlib import Path
from typing import Any

import pytest

from tests.reference import LABELLED, needs_reference, truth
from tests.simulator.check import Outcome, check

Events = list[dict[str, Any]]
Changes = tuple[Callable[[Events], Events], ...]


def shuffled(events: Events) -> Events:
    return random.Random(0).sample(events, len(events))


def without_sync_rows(events: Events) -> Events:
    return [event for event in events if event.get("cat") != "cuda_sync"]


def whole_microseconds(events: Events) -> Events:
    """Both ends are rounded down, as older files have it."""
    result = []
    for event in events:
        event, start = dict(event), Decimal(str(event["ts"]))
        event["ts"] = floor(start)
        if "dur" in event:
            event["dur"] = floor(start + Decimal(str(event["dur"]))) - event["ts"]
        result.append(event)
    return result


def streams_as_text(events: Events) -> Events:
    """In the lane, as older files have it, and in the arguments."""
    result = []
    for event in events:
        stream = event.get("args", {}).get("stream")
        if stream is not None:
            event = {**event, "tid": f"stream {stream}", "args": {**event["args"], "stream": str(stream)}}
        result.append(event)
    return result


CHANGES = (shuffled, without_sync_rows, whole_microseconds, streams_as_text)
# As many verdicts; three files have rows of category cuda_sync, all have decimals and streams as numbers.
FILES = ("trace_001.json.gz", "trace_003.json.gz", "trace_004.json.gz", "trace_011.json.gz",
         "trace_012.json.gz", "trace_021.json.gz")
ONE = "trace_003.json.gz"  # in which every change alone changes something


def rewritten(name: str, changes: Changes, path: Path) -> Outcome:
    """What the engine makes of a labelled trace after these changes."""
    document = json.loads(gzip.decompress((LABELLED / name).read_bytes()))
    before = document["traceEvents"]
    for change in changes:
        document["traceEvents"] = change(document["traceEvents"])
    assert document["traceEvents"] != before
    path.write_text(json.dumps(document))
    return check(path, truth()[name])


@needs_reference
@pytest.mark.parametrize(("name", "changes"), [
    *(pytest.param(name, CHANGES, id=f"all-{name}") for name in FILES),
    *(pytest.param(ONE, (change,), id=f"{change.__name__}-{ONE}") for change in CHANGES)])
def test_the_answers_stay(name: str, changes: Changes, tmp_path: Path) -> None:
    """They keep to the truth within the bounds that hold for the files as they are."""
    found = rewritten(name, changes, tmp_path / "trace.json")
    assert found.whole == (whole_microseconds in changes)
    assert found.verdict in found.accept
    assert found.steps_agree and found.partition_error < 0.005, found.worst_class
    assert found.errors and max(found.errors + found.false_gains)[0] < 0.05
