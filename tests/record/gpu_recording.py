"""Recordings of a machine whose GPUs the stand-in library has, followed while they run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from profiler.model import Event
from profiler.run.reader import Run
from tests.fakes import nvml
from tests.record.running import PYTHON, environment, recording, script
from tests.waiting import until

WAITING = """
    import pathlib, time
    pathlib.Path("started").touch()
    while not pathlib.Path("end").exists():
        time.sleep(0.01)
    raise SystemExit(7)
    """
PATIENCE = 60.0


class Watched:
    """A recording that runs, with the file that it writes."""

    def __init__(self, folder: Path, recorder: subprocess.Popen[bytes], plan: nvml.Plan) -> None:
        self.folder, self.recorder, self.plan = folder, recorder, plan
        self.run = Run.open(until(lambda: self._file(), PATIENCE))

    def _file(self) -> Path | None:
        path = self.folder / "run.stepscope"
        return path if path.exists() and (self.folder / "started").exists() else None

    def events(self, kind: str) -> list[Event]:
        self.run.refresh()
        return [event for event in self.run.events() if event.kind == kind]

    def wait_event(self, kind: str, number: int = 1) -> Event:
        return until(lambda: self.events(kind)[number - 1:], PATIENCE, kind)[-1]

    def count(self, metric: str, gpu: int = 0) -> int:
        self.run.refresh()
        return sum(len(self.run.values(track)[0]) for track in tracks(self.run, metric, gpu))

    def wait_more(self, metric: str, gpu: int = 0) -> None:
        """Until there are values that are not there now."""
        now = self.count(metric, gpu)
        until(lambda: self.count(metric, gpu) > now + 1, PATIENCE, metric)

    def wait_more_of_host(self) -> None:
        def count() -> int:
            self.run.refresh()
            return sum(len(self.run.values(track.id)[0]) for track in self.run.find("host.cpu"))

        now = count()
        until(lambda: count() > now, PATIENCE, "host.cpu")

    def reader(self) -> psutil.Process | None:
        """The process that reads the GPUs, if there is one."""
        for child in psutil.Process(self.recorder.pid).children():
            try:
                if "gpu-read" in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                    return child
            except psutil.Error:
                continue
        return None

    def target(self) -> psutil.Process:
        children = psutil.Process(self.recorder.pid).children()
        return next(child for child in children if child.cmdline()[-1].endswith("script.py"))

    def end(self) -> None:
        (self.folder / "end").touch()
        assert self.recorder.wait(PATIENCE) == 7


def tracks(run: Run, metric: str, gpu: int = 0) -> list[int]:
    device = next((d.id for d in run.devices if d.uuid.endswith(str(gpu))), None)
    return [] if device is None else [track.id for track in run.find(metric, device=device)]


def loaded(process: psutil.Process) -> bool:
    """Whether it has loaded the driver's library."""
    return nvml.SONAME in Path(f"/proc/{process.pid}/maps").read_text()


def held_by(process: psutil.Process) -> set[str]:
    """What its descriptors lead to."""
    return {str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()}


Record = Callable[..., Any]


@contextmanager
def watch(library: Path, folder: Path, *lines: str) -> Iterator[Watched]:
    """A recording of a script that waits for the file `end`, on the library with that plan."""
    plan = nvml.Plan(folder / "plan", *lines)
    env = {**nvml.environment(library, plan, environment(folder)), "STEPSCOPE_TEST_LIBRARY_DIR": str(library)}
    with recording(folder, "--", PYTHON, str(script(folder, WAITING)), env=env) as recorder:
        one = Watched(folder, recorder, plan)
        try:
            yield one
        finally:
            one.run.close()
