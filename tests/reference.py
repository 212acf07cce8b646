"""The reference data beside the repository: real traces, labelled ones, what other tools report."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from profiler.importers import kineto
from profiler.trace.model import Trace

REFERENCE = Path(__file__).resolve().parents[1] / "../shared/reference"
TRACES = REFERENCE / "traces"
LABELLED = REFERENCE / "labelled"

needs_reference = pytest.mark.skipif(not TRACES.is_dir(), reason="no reference data beside the repository")


def reference_files() -> list[Path]:
    """Every real trace; none where the data is not there."""
    return sorted(TRACES.glob("*.gz"))


@cache
def expected() -> dict[str, Any]:
    """expected.json: by file name, what each tool says."""
    return json.loads((REFERENCE / "expected.json").read_text("utf-8"))["traces"]


@cache
def truth() -> dict[str, dict[str, Any]]:
    """truth.jsonl by file name; empty where the data is not there."""
    if not LABELLED.is_dir():
        return {}
    lines = (LABELLED / "truth.jsonl").read_text("utf-8").splitlines()
    return {row["file"]: row for row in map(json.loads, lines)}


@cache
def traces(name: str) -> tuple[Trace, ...]:
    """Every process in a real or labelled trace."""
    folder = LABELLED if name in truth() else TRACES
    return tuple(kineto.load(folder / name))


def trace(name: str) -> Trace:
    """The first process in a real or labelled trace."""
    return traces(name)[0]
