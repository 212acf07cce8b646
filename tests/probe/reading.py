"""Runs a script under the probe alone, without a recorder, and reads what it spooled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).with_name("scripts")
PROBE = Path(__file__).parents[2] / "profiler" / "probe"

FIELDS = ("index", "t0", "t1", "data", "h2d", "forward", "backward", "optimizer", "data_cpu", "thread_cpu",
          "samples", "optimizer_calls", "syncs", "sync_ns", "flags")
EVALUATION, EPOCH_FIRST, PROFILED, PARTIAL = 1, 2, 4, 8


@dataclass
class Spooled:
    """What one process wrote."""

    pid: int
    records: list[list[Any]] = field(default_factory=list)

    def of(self, code: str) -> list[list[Any]]:
        return [r[1:] for r in self.records if r[0] == code]

    @property
    def steps(self) -> list[dict[str, int]]:
        return [dict(zip(FIELDS, r, strict=True)) for r in self.of("step")]

    @property
    def training(self) -> list[dict[str, int]]:
        return [s for s in self.steps if not s["flags"] & EVALUATION]

    @property
    def evaluation(self) -> list[dict[str, int]]:
        return [s for s in self.steps if s["flags"] & EVALUATION]

    @property
    def loaders(self) -> list[dict[str, Any]]:
        return [r[0] for r in self.of("loader")]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [dict(zip(("t", "kind", "severity", "text", "data"), r, strict=True))
                for r in self.of("event") if r[1] == kind]


@dataclass
class Ran:
    returncode: int
    stdout: str
    stderr: str
    spool: Path
    processes: list[Spooled]

    @property
    def only(self) -> Spooled:
        assert len(self.processes) == 1, [p.pid for p in self.processes]
        return self.processes[0]

    @property
    def said(self) -> Any:
        """The JSON object on the script's last line of output."""
        return json.loads(self.stdout.splitlines()[-1])


def read(directory: Path) -> list[Spooled]:
    found: dict[int, Spooled] = {}
    names = [p.name.split(".") for p in directory.glob("*.spool")]
    for pid, n in sorted((int(a), int(b)) for a, b, _ in names):
        lines = (directory / f"{pid}.{n}.spool").read_text().splitlines(keepends=True)
        assert all(line.endswith("\n") for line in lines)
        found.setdefault(pid, Spooled(pid)).records += [json.loads(line) for line in lines]
    return list(found.values())


def run(tmp_path: Path, *args: str, probe: bool = True, env: dict[str, str] | None = None, stdin: str = "",
        python: tuple[str, ...] = (), cwd: Path | None = None, timeout: float = 120) -> Ran:
    """Run `python args`; an argument that names a file in scripts/ becomes its path."""
    spool = tmp_path / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEPSCOPE_")}
    if probe:
        environment["PYTHONPATH"] = str(PROBE)
        environment["STEPSCOPE_SPOOL"] = str(spool)
    environment["OMP_NUM_THREADS"] = "1"
    environment.update(env or {})
    command = [str(SCRIPTS / a) if (SCRIPTS / a).is_file() else a for a in args]
    done = subprocess.run([sys.executable, *python, *command], env=environment, cwd=cwd or tmp_path,
                          input=stdin.encode(), capture_output=True, timeout=timeout, check=False)
    # decoded by hand: a carriage return stays one
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), spool, read(spool))


def together(*runs: Callable[[], Ran]) -> list[Ran]:
    """Several runs side by side, two at a time: most of each is the import of torch."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda one: one(), runs))


def with_and_without(tmp_path: Path, *args: str, env: dict[str, str] | None = None,
                     stdin: str = "") -> tuple[Ran, Ran]:
    """A run under the probe, and the same without it."""
    ran, bare = together(lambda: run(tmp_path / "with", *args, env=env, stdin=stdin),
                         lambda: run(tmp_path / "without", *args, probe=False, stdin=stdin))
    return ran, bare
