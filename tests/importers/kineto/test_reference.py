"""Real traces against a plain reading of the same files."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from profiler.importers import kineto
from profiler.trace.model import Kind
from tests.reference import LABELLED, TRACES, needs_reference, reference_files, traces

SMALL = 1_200_000  # bytes compressed, of the files that are read a second time in plain Python
HOST = {"cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "overhead", "operator",
        "runtime"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def small() -> list[Path]:
    labelled = sorted(LABELLED.glob("*.gz"))[::4] if LABELLED.is_dir() else []
    return [p for p in reference_files() if p.stat().st_size < SMALL and ".tar" not in p.name] + labelled


def ns(value: Any) -> int:
    return int((Decimal(str(value)) * 1000).to_integral_value())


@needs_reference
@pytest.mark.parametrize("path", small(), ids=lambda p: p.name)
def test_rows_and_times_are_those_of_the_file(path: Path) -> None:
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    [trace] = traces(path.name)
    zero = min(ns(e["ts"]) for e in events if e["cat"].lower() in HOST | DEVICE) // 1000 * 1000
    for table, categories in ((trace.host, HOST), (trace.device, DEVICE)):
        plain = sorted((ns(e["ts"]) - zero, ns(e["ts"]) - zero + ns(e["dur"]), e["name"]) for e in events
                       if e["cat"].lower() in categories)
        names = [trace.names[code] for code in table.name.tolist()]
        rows = sorted(zip(table.start.tolist(), table.end.tolist(), names, strict=True))
        assert rows == plain
    assert len(trace.memory) == sum(e.get("name") == "[memory]" for e in document["traceEvents"])
    assert len(trace.syncs) == sum(e["cat"] == "cuda_sync" for e in events)
    assert trace.losses.events == len(document["traceEvents"]) and not trace.losses.any and trace.notes == ()
    assert trace.base_ns == zero + int(document.get("baseTimeNanoseconds", 0))


@needs_reference
@pytest.mark.parametrize("path", reference_files(), ids=lambda p: p.name)
def test_every_file_imports_whole(path: Path) -> None:
    assert kineto.sniff(path)
    for trace in traces(path.name):
        assert len(trace.host) + len(trace.device) > 0
        assert not trace.losses.any and trace.notes == ()
        assert trace.absolute == (path.name != "large_integers.json.gz")


@needs_reference
def test_ranks_of_a_tar() -> None:
    found = traces("v100_dlrm_8ranks.tar.gz")
    assert [t.rank for t in found] == list(range(8)) and {t.world_size for t in found} == {8}
    assert all(f"worker{t.rank}_" in t.source for t in found)


@needs_reference
def test_annotations_of_old_files() -> None:
    """In old spelling only the names tell; operators that others call have no `::` either."""
    [trace] = traces("v100_resnet50_workers0.json.gz")
    found = Counter(trace.names[c].split("#")[0] for c in trace.host.name[trace.host.kind == Kind.ANNOTATION])
    assert set(found) == {"ProfilerStep", "enumerate(DataLoader)", "Optimizer.zero_grad", "Optimizer.step"}
    assert found["ProfilerStep"] == found["Optimizer.step"] > 1


@needs_reference
def test_properties_and_lanes() -> None:
    [trace] = traces("rtx2080ti_resnet.json.gz")
    assert trace.properties[0]["name"] == "NVIDIA GeForce RTX 2080 Ti" and trace.properties[0]["numSms"] == 68
    assert trace.metadata["process_name"].startswith("python")
    assert any(t.name.startswith("thread ") for t in trace.threads)
    assert TRACES.is_dir()
