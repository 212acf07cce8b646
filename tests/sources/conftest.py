from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.model import Device, Event, Track
from profiler.sources import amd, amd_slow
from profiler.sources.tree import TargetTree
from tests.fakes import nvml
from tests.fakes.amdsmi_plan import STANDIN
from tests.sources.amd_sources import Amd
from tests.sources.spooling import Spool

ANSWERS_S = 120.0  # to one command, on a machine that does much else
CHILD = Path(nvml.__file__).with_name("nvml_child.py")


class NvmlChild:
    """The NVML sources in a process of their own, on the stand-in library with a plan."""

    def __init__(self, library: Path, plan: nvml.Plan) -> None:
        self.plan = plan
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD)],
            env=nvml.environment(library, plan),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, name: str, **arguments: Any) -> Any:
        answer = self.ask(name, **arguments)
        assert "error" not in answer, answer
        return answer["value"]

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": name, **arguments}) + "\n")
        self._process.stdin.flush()
        limit = threading.Timer(ANSWERS_S, self._process.kill)
        limit.start()
        line = self._process.stdout.readline()
        limit.cancel()
        assert line, f"the child ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def open(self) -> None:
        self.do("call", source="fast", method="open")
        self.do("call", source="slow", method="open")

    def read(self, times: int = 1, step_s: float = 0.1) -> None:
        self.do("read", source="fast", times=times, step_s=step_s)

    def read_slow(self, times: int = 1, step_s: float = 1.0) -> None:
        self.do("read", source="slow", times=times, step_s=step_s)

    def dump(self) -> Dump:
        return Dump(self.do("dump"))

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


class Dump:
    """What the sources have put into their sink so far."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.meta: dict[str, Any] = data["meta"]
        self.devices = [Device(**row) for row in data["devices"]]
        self.tracks = [Track(**row) for row in data["tracks"]]
        self.events = [Event(**row) for row in data["events"]]
        self._samples: list[tuple[int, int, float]] = [tuple(row) for row in data["samples"]]

    def samples(self, metric: str, gpu: int = 0, index: int | None = None) -> list[tuple[int, float]]:
        device = next(d.id for d in self.devices if d.index == gpu)
        tracks = {
            t.id
            for t in self.tracks
            if t.metric == metric and t.device == device and index in (None, t.index)
        }
        return [(t_ns, value) for track, t_ns, value in self._samples if track in tracks]

    def values(self, metric: str, gpu: int = 0, index: int | None = None) -> list[float]:
        return [value for _, value in self.samples(metric, gpu, index)]

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def start_nvml(nvml_library: Path, tmp_path: Path) -> Iterator[Callable[..., NvmlChild]]:
    children: list[NvmlChild] = []

    def start(*lines: str, library: Path = nvml_library) -> NvmlChild:
        children.append(NvmlChild(library, nvml.Plan(tmp_path / "plan", *lines)))
        return children[-1]

    yield start
    for child in children:
        child.end()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


@pytest.fixture
def amdsmi(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in for the package, as if just loaded."""
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.setattr(amd, "PATIENCE_S", 30.0)  # a busy machine is no driver that hangs
    monkeypatch.setattr(amd_slow, "PATIENCE_S", 30.0)
    module = importlib.import_module("amdsmi")
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    module.start_anew()
    return module


@pytest.fixture
def without_amdsmi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("ROCM_PATH", "/nowhere")


@pytest.fixture
def start_amd(amdsmi: Any) -> Iterator[Callable[..., Amd]]:
    started: list[Amd] = []

    def start(tree: TargetTree | None = None, **plan: Any) -> Amd:
        started.append(Amd(amdsmi, tree).open(plan))
        return started[-1]

    yield start
    for one in started:
        one.close()
