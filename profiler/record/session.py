"""What a recording is made of before it begins: run file, spool, target, sources."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.paths import working_dir
from profiler.record import metadata
from profiler.record.clock import Clock
from profiler.record.environment import Probing, target_environment
from profiler.record.options import Options
from profiler.record.private import private_folder
from profiler.record.target import PtyTarget, Target
from profiler.run.alive import process_start
from profiler.sources import Source
from profiler.sources.host import HostSource
from profiler.sources.spool import SpoolSource
from profiler.sources.tree import TargetTree

SPOOL_PREFIX = "stepscope-spool-"


def make_spool() -> Path:
    """A private folder for what probes write. RunError when it cannot be made."""
    return private_folder(SPOOL_PREFIX)


def first_meta(options: Options, clock: Clock) -> dict[str, Any]:
    """What is known of the run before its target starts. What takes longer (git) follows."""
    workload = None
    if options.workload is not None:
        workload = {"name": options.workload, "settings": dict(options.settings),
                    "data": str(options.data) if options.data else None, "work": list(options.work)}
    return {
        "name": options.name, "notes": options.notes, "kind": options.kind, "command": list(options.command),
        "cwd": str(working_dir() or ""), "workload": workload,
        "environment": metadata.environment(os.environ),
        "git": None, "versions": metadata.versions(), "machine": metadata.machine(),
        "start_ns": clock.start_wall_ns, "start_monotonic_ns": clock.start_monotonic_ns,
        "rate_hz": options.rate_hz, "recorder_pid": os.getpid(), "recorder_start": process_start(),
        "trace": options.trace(), "intervene": dict(options.intervene) if options.intervene else None,
    }


def start_target(options: Options, spool: Path) -> tuple[Target | PtyTarget, int | None]:
    """The target, running, and our end of its lifeline. TargetError when it cannot be started."""
    lifeline = os.pipe() if options.lifeline or options.workload is not None else None
    probing = Probing(spool, options.trace(), options.intervene, lifeline[0] if lifeline else None)
    env = target_environment(os.environ, probing, workload=options.workload is not None)
    kept = (lifeline[0],) if lifeline else ()
    target: Target | PtyTarget
    try:
        if options.control:
            target = PtyTarget(options.command, {**env, "TERM": "dumb"}, kept=kept)
        else:
            # with --json our standard output holds one object and nothing else
            stdout = 2 if options.json_result else None
            target = Target(options.command, env, kept=kept, stdout=stdout)
    finally:
        if lifeline:
            os.close(lifeline[0])
    return target, lifeline[1] if lifeline else None


def make_sources(tree: TargetTree, spool: Path,
                 devices: Mapping[str, int]) -> tuple[list[Source], SpoolSource]:
    """The sources of this process, and the one of the spool among them. `devices`: ids by UUID."""
    probes = SpoolSource(spool, tree, devices)
    return [HostSource(tree), probes], probes
