"""The environment that the target gets: ours plus what lets the probe in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.paths import PROBE, working_dir

OWN = ("STEPSCOPE_SPOOL", "STEPSCOPE_TRACE", "STEPSCOPE_INTERVENE", "STEPSCOPE_LIFELINE")


@dataclass(frozen=True, slots=True)
class Probing:
    """What the probe is told."""

    spool: Path
    trace: Mapping[str, Any] | None = None  # start_step, steps, max_seconds, every_seconds
    intervene: Mapping[str, Any] | None = None
    lifeline_fd: int | None = None


def target_environment(base: Mapping[str, str], probing: Probing, *, workload: bool) -> dict[str, str]:
    """`base` with the probe's settings, and its folder first on PYTHONPATH.

    A workload of ours sees nothing else on PYTHONPATH, so that a user's
    modules do not take the place of those it imports.
    """
    env = {key: value for key, value in base.items() if key not in OWN}
    env["STEPSCOPE_SPOOL"] = str(probing.spool)
    if probing.trace is not None:
        env["STEPSCOPE_TRACE"] = json.dumps(dict(probing.trace))
    if probing.intervene:
        env["STEPSCOPE_INTERVENE"] = json.dumps(dict(probing.intervene))
    if probing.lifeline_fd is not None:
        env["STEPSCOPE_LIFELINE"] = str(probing.lifeline_fd)
    before = [] if workload else _entries(base.get("PYTHONPATH", ""))
    env["PYTHONPATH"] = os.pathsep.join([str(PROBE), *(entry for entry in before if entry != str(PROBE))])
    _remove_test_library(env)
    return env


def _entries(python_path: str) -> list[str]:
    # Python takes an empty entry as the working directory; spelled out, it stays what it was
    if not python_path:
        return []
    here = working_dir()
    entries = (entry or (str(here) if here else "") for entry in python_path.split(os.pathsep))
    return [entry for entry in entries if entry]


def _remove_test_library(env: dict[str, str]) -> None:
    """A stand-in driver library that tests give the recorder stays out of the target."""
    folder = env.pop("STEPSCOPE_TEST_LIBRARY_DIR", None)
    if folder is None or "LD_LIBRARY_PATH" not in env:
        return
    rest = [entry for entry in env["LD_LIBRARY_PATH"].split(os.pathsep) if entry != folder]
    if rest:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(rest)
    else:
        del env["LD_LIBRARY_PATH"]
