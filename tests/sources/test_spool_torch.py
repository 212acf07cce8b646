"""What the probe reads of torch now and then becomes series and properties of the process."""

from __future__ import annotations

from profiler.metrics import METRICS
from tests.sources.spooling import OFFSET, Spool


def test_memory_with_the_allocators_troubles_and_without(spool: Spool) -> None:
    spool.write(spool.hello(), ["memory", spool.t, 0, 10, 40, 30, 3, 1, 7, 11],
                ["memory", spool.t + 1, 0, 11, 41, 31], ["memory", spool.t + 2, 0, 11, 41])
    sink = spool.read()
    assert [v for _, v in sink.values("torch.mem_allocated", index=0)] == [10, 11]
    assert [v for _, v in sink.values("torch.alloc_retries", index=0)] == [3]
    assert [v for _, v in sink.values("torch.ooms", index=0)] == [1]
    assert [v for _, v in sink.values("torch.mem_split", index=0)] == [7]
    assert [v for _, v in sink.values("torch.driver_calls", index=0)] == [11]


def test_shapes_compilation_and_copies(spool: Spool) -> None:
    said = {"matmul_precision": "highest", "weights": {"float32": 9}}
    spool.write(spool.hello(), ["shape", spool.t, 1], ["shape", spool.t + 5, 2], ["shapes", {"distinct": 2}],
                ["compiled", spool.t, 1, 900], ["copies", spool.t, 4, 1600, {"pinned": 1.0}],
                ["numerics", said], ["shape", "x", 1], ["copies", spool.t, 1])
    sink = spool.read()
    at = spool.t + OFFSET
    assert sink.values("batch.shapes") == [(at, 1), (at + 5, 2)]
    assert sink.values("torch.graphs") == [(at, 1)] and sink.values("torch.compile_time") == [(at, 900)]
    assert sink.values("torch.copies") == [(at, 4)] and sink.values("torch.copied") == [(at, 1600)]
    assert {track.metric for track in sink.tracks} <= METRICS.keys()
    properties = sink.processes[0].properties
    assert properties["numerics"] == said and properties["shapes"] == {"distinct": 2}
    assert properties["copies"] == {"pinned": 1.0}
    assert "spool_damaged" in sink.kinds()
