"""The wall clock is set, the machine sleeps: samples keep order and distance, and an event says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from profiler.record.clock import Clock
from profiler.record.clock_watch import ClockWatch, Readings, readings
from profiler.record.options import Options
from profiler.record.recorder import _create
from tests.fakes.sink import ListSink
from tests.record.running import PYTHON, environment, opened, recording
from tests.waiting import until

SECOND = 1_000_000_000
CLOCKS = Path(__file__).parents[1] / "fakes" / "clock.c"


class Clocks:
    """Three clocks that run on by a second at each reading, and jump when told to."""

    def __init__(self) -> None:
        self.set = self.slept = self.now = 0
        self.unsure = False

    def __call__(self) -> Readings | None:
        self.now += SECOND
        if self.unsure:
            return None
        return self.now, self.now + self.slept, 10**18 + self.now + self.slept + self.set


@pytest.mark.parametrize(("set_s", "slept_s", "told"), [
    (3600, 0, [("clock_step", "forward by 1\u00a0h")]),
    (-3600, 0, [("clock_step", "back by 1\u00a0h")]),
    (0.2, 0, [("clock_step", "forward by 200\u00a0ms")]),
    (0.05, 0, []),
    (0, 600, [("suspended", "slept for 10")]),
    (1.5, 600, [("suspended", "slept for 10")]),
    (-86400, 600, [("suspended", "slept for 10"), ("clock_step", "back by 24")]),
])
def test_each_is_told_once(set_s: float, slept_s: int, told: list[tuple[str, str]]) -> None:
    clocks, sink, clock = Clocks(), ListSink(), Clock()
    watch = ClockWatch(clock, clocks)
    for jump in (False, True, False):
        if jump:
            clocks.set, clocks.slept = round(set_s * SECOND), slept_s * SECOND
            clocks.unsure = True  # a busy moment only delays it
            watch.look(sink)
            clocks.unsure = False
        watch.look(sink)
        watch.look(sink)
    assert [event.kind for event in sink.events] == [kind for kind, _ in told]
    for event, (_, words) in zip(sink.events, told, strict=True):
        assert words in event.text, event.text
    assert len(clock.anchors) == (2 if told else 1)
    assert ("anchors" in sink.meta) == bool(told)


def test_clocks_of_this_machine_are_read_together() -> None:
    found = until(readings)
    assert found[1] >= found[0] > 0 and found[2] > found[1]


def test_what_the_run_file_tells_itself_is_on_the_runs_clock(tmp_path: Path) -> None:
    """The wall clock may have been set since the start."""
    clock = Clock((time.monotonic_ns(), 10**18))
    _, writer = _create(Options(tmp_path / "run.stepscope"), clock)
    writer.event(1 << 70, "mark", "info", "far away")
    writer.finish("finished", clock.now_ns())
    with opened(tmp_path) as run:
        (event,) = run.events()
    assert event.kind == "record_rejected" and 10**18 <= event.t_ns <= clock.now_ns()


@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("cc") is None,
                    reason="preloads a library that is compiled here")
def test_a_recording_whose_clocks_jump(tmp_path: Path) -> None:
    library, plan = tmp_path / "clock.so", tmp_path / "plan"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(CLOCKS), "-ldl"], check=True)

    def jump(set_s: int, slept_s: int) -> None:
        new = plan.with_suffix(".new")
        new.write_text(f"{set_s} {slept_s}")
        new.replace(plan)

    def kinds() -> list[str]:
        if not (tmp_path / "run.stepscope").exists():
            return []
        with opened(tmp_path) as run:
            return [event.kind for event in run.events() if event.kind in ("clock_step", "suspended")]

    def samples() -> int:
        with opened(tmp_path) as run:
            return sum(len(run.values(track.id)[0]) for track in run.find("host.cpu"))

    jump(0, 0)
    env = environment(tmp_path, LD_PRELOAD=str(library), STEPSCOPE_FAKE_CLOCK=str(plan))
    command = [PYTHON, "-S", "-c", "import sys; sys.stdin.read()"]
    with recording(tmp_path, "--", *command, env=env, stdin=subprocess.PIPE,
                   stderr=subprocess.DEVNULL) as process:
        until(lambda: (tmp_path / "run.stepscope").exists() and samples() > 1, 60)
        told: list[str] = []
        for set_s, slept_s, kind in ((-7200, 0, "clock_step"), (86400, 0, "clock_step"),
                                     (86400, 3600, "suspended")):
            jump(set_s, slept_s)
            told.append(kind)
            until(lambda: kinds() == told, 60, f"{told}")
        before = samples()
        until(lambda: samples() > before, 60)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0
    with opened(tmp_path) as run:
        length = run.end_ns - run.start_ns
        assert 0 < length < 600 * SECOND
        for track in run.tracks:
            times, _ = run.values(track.id)
            assert (np.diff(times) >= 0).all() and times[0] >= run.start_ns - SECOND
            assert times[-1] - times[0] <= length + SECOND
        walls = [wall - monotonic for monotonic, wall in run.meta["anchors"]]
        jumps = np.round(np.diff(walls) / SECOND).astype(int)
        assert jumps[jumps != 0].tolist() == [-7200, 93600, 3600]
