"""Tracks that get no samples for long take little memory, and lose nothing when they get some again."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from profiler.run import blocks
from profiler.run.blocks import OpenBlocks
from profiler.run.pyramid import FANOUT
from profiler.run.reader import Run
from profiler.run.samples import ALWAYS, load
from profiler.run.writer import RunWriter

START = 1_700_000_000_000_000_000
MS = 1_000_000


def _wait(writer: RunWriter, now: list[float], seconds: float) -> None:
    """Time passes, and the writer commits."""
    for _ in range(6 * blocks.CALLS):
        now[0] += seconds / 6 / blocks.CALLS
        writer.sample(2, START + round(now[0] * 1e9), 1.0)  # another track, which goes on
        writer.commit()


@pytest.mark.parametrize("counts", [(1, 1, 1), (20, 300, 5), (16, 16, 16), (5000, 3, 4090), (0, 700, 1)])
def test_a_track_that_goes_on_after_a_pause(tmp_path: Path, counts: tuple[int, ...]) -> None:
    now = [0.0]
    writer = RunWriter.create(tmp_path / "a.stepscope", {"start_ns": START}, clock=lambda: now[0])
    track, _ = writer.track("gpu.power"), writer.track("host.cpu")
    rng = np.random.default_rng(1)
    told: list[tuple[int, float]] = []
    for count in counts:
        for i in range(count):
            sample = START + round(now[0] * 1e9) + i * MS, float(rng.integers(0, 1000)) / 8
            writer.sample(track, *sample)
            told.append(sample)
        _wait(writer, now, 6 * blocks.IDLE_SECONDS)
        assert track not in writer._blocks._tracks, "it takes no place while it rests"
    writer.finish("finished", START + round(now[0] * 1e9))
    with Run.open(writer.path) as run, run._reading() as db:
        values = np.array([value for _, value in told])
        for level in range(4):
            whole = len(values) // FANOUT**level
            (entries,) = db.execute("SELECT total(n) FROM block WHERE track = ? AND level = ?",
                                    (track, level)).fetchone()
            assert entries == whole
            part = load(db, run._kept, track, level, *ALWAYS)
            groups = values[: whole * FANOUT**level].reshape(whole, FANOUT**level)
            assert part.low[:whole].tolist() == groups.min(axis=1).tolist()
            assert part.high[:whole].tolist() == groups.max(axis=1).tolist()
            assert part.t0[0] == told[0][0]
            assert part.t1[-1] == told[-1][0]


def test_tracks_of_processes_that_are_gone_take_little_memory() -> None:
    """A day of short programs makes tens of thousands of tracks."""
    open_blocks = OpenBlocks()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for group in range(20):
            now = group * 10.0
            for i in range(20):
                tracks = list(range(group * 50, group * 50 + 50))
                open_blocks.add(tracks, [group * 10**7 + i] * 50, [i / 7] * 50, now)
        for turn in range(6 * blocks.CALLS):
            open_blocks.close(1000.0 + turn * blocks.IDLE_SECONDS, whole=False)
        open_blocks.rows.clear()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert not open_blocks._tracks
    assert held / 1000 < 500, f"{held / 1000:.0f} bytes for each track"


def test_tracks_of_a_process_that_is_told_to_be_gone_take_none(tmp_path: Path) -> None:
    now = [0.0]
    writer = RunWriter.create(tmp_path / "a.stepscope", {"start_ns": START}, clock=lambda: now[0])
    gone, lives = writer.add_process(70, "python", started_ns=1), writer.add_process(71, "python")
    first = writer.track("step.wall", process=gone)
    second = writer.track("step.wall", process=lives)
    for i in range(300):
        writer.sample(first, START + i * MS, float(i))
        writer.sample(second, START + i * MS, float(-i))
    writer.end_process(gone)
    writer.end_process(gone)  # told twice
    writer.commit()
    _wait(writer, now, blocks.LONGEST_SECONDS)
    assert first not in writer._blocks._tracks and second in writer._blocks._tracks
    assert not writer._blocks._idle and not writer._blocks._ended
    other = writer.track("step.data", process=lives)
    assert other > second and writer.track("step.wall", process=lives) == second
    writer.finish("finished", START + round(now[0] * 1e9))
    with Run.open(writer.path) as run:
        assert run.values(first)[1].tolist() == list(map(float, range(300)))
        assert sorted(track.id for track in run.tracks) == [first, second, other]


def test_a_process_that_ends_after_a_long_rest(tmp_path: Path) -> None:
    now = [0.0]
    writer = RunWriter.create(tmp_path / "a.stepscope", {"start_ns": START}, clock=lambda: now[0])
    process = writer.add_process(70, "python")
    track = writer.track("step.wall", process=process)
    writer.track("host.cpu")
    writer.sample(track, START, 1.0)
    _wait(writer, now, 6 * blocks.IDLE_SECONDS)
    assert track in writer._blocks._idle
    writer.end_process(process)
    writer.commit()
    assert not writer._blocks._idle and not writer._blocks._ended
    writer.finish("finished", START + round(now[0] * 1e9))
