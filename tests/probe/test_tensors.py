"""Copies to the GPU and blocking reads, with tensors that pretend to be there."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from tests.probe.reading import run


def test_copies_and_reads_until_something_compiles(tmp_path: Path) -> None:
    ran = run(tmp_path, "pretended.py")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.said == {"patched": True, "restored": True, "left": [], "told": [False] * 4, "arrival": True}
    steps = ran.only.training
    assert len(steps) == 10
    assert median(s["h2d"] for s in steps) > 5e6
    assert {s["syncs"] for s in steps} == {2}
    assert median(s["sync_ns"] for s in steps) > 10e6
    assert not ran.only.events("hook_off")
    assert ran.only.of("copies")[-1][1:] == [10, 10 * 2 * 8 * 4, {"pinned": 0.0, "blocking": 1.0}]
    sites = ran.only.of("site")
    assert sum(hook == "sync" for hook, _ in sites) == 2
    assert sum(hook == "h2d" for hook, _ in sites) == 1
