"""Two small runs to keep, one healthy and one starved, with their traces; an experiment on the latter."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from faults import HEALTHY, TINY
from kit import ROOT, Check, brief
from loops import stages
from telemetry import signals

from profiler.run.reader import Run

LARGEST = 8 << 20  # bytes of a file that is kept
TRACED_STEPS = 4
STARVED = {"workers": 1, "steps": 60}


def check_kept(check: Check) -> None:
    """The healthy run is compute-bound, the starved one input-bound; a prediction is put to the test."""
    base = {**TINY, "threads": 1} if check.rehearsal else HEALTHY["image_classification"]
    for name, verdict, more in (("healthy", "compute_bound", {}), ("starved", "input_bound", STARVED)):
        path = check.workload(name, "image_classification", {**base, **more},
                              "--trace-steps", str(TRACED_STEPS))
        keep(check, name, path)
        stages(check, name, path)
        signals(check, name, path)
        told = check.diagnosis(path)
        check.figures[name]["diagnosis"] = brief(told)
        check.told(f"{name}: verdict", f"{', '.join((told['verdict'], *told['also']))}, confidence "
                   f"{told['confidence']}", told["verdict"] == verdict)
        error = told["replay_error"]
        check.told(f"{name}: replay", f"error {error}", error is not None and error <= 0.05)
    experiment(check, check.work / "starved.stepscope")


def experiment(check: Check, path: Path) -> None:
    """The first remedy of the starved run, by pairs: it helps, and about as much as predicted."""
    done = check.stepscope("verify", str(path), "--pairs", "3", "--steps", "40", "--json", limit_s=180)
    if done.returncode:
        check.told("starved: experiment", done.stderr.strip()[-300:], False)
        return
    told: dict[str, Any] = json.loads(done.stdout)
    check.figures["experiment"] = told
    ratio = told.get("ratio") or {}
    check.told("starved: experiment", f"{ratio.get('median')} x, {told.get('outcome')}; prediction "
               f"{json.dumps(told.get('prediction'))}, {told.get('score')}",
               ratio.get("low", 0) > 1.02 and told.get("score") != "miss")


def keep(check: Check, name: str, path: Path) -> None:
    """The run, without the names of this machine, and its trace, in the folder that stays."""
    with Run.open(path) as run:
        traces = [_plain(run.attachment(item.id)) for item in run.attachments() if item.kind == "kineto"]
    kernels = sum(len(re.findall(rb'"cat": *"kernel"', trace)) for trace in traces)
    check.told(f"{name}: profiler window", f"{len(traces)} traces, {kernels} kernels", kernels > 0)
    kept = check.keep / f"{name}.stepscope"
    shutil.copy(path, kept)
    anonymous(kept)
    files = [kept]
    for trace in traces[:1]:
        files.append(check.keep / f"{name}.json.gz")
        files[-1].write_bytes(gzip.compress(trace, 9, mtime=0))
    for file in files:
        size = file.stat().st_size
        check.told(f"kept: {file.name}", f"{size / 1e6:.2f} MB", size <= LARGEST, False)


def _plain(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def anonymous(path: Path) -> None:
    """Put general names into a run in the place of this machine's folders and of its own name."""
    pairs = [(str(ROOT), "/home/user/stepscope"), (str(Path.cwd()), "/home/user"),
             (sys.executable, "/usr/bin/python3")]
    with sqlite3.connect(path) as db:
        for table, key, column in (("meta", "key", "value"), ("process", "id", "command"),
                                   ("process", "id", "properties"), ("event", "id", "data"),
                                   ("event", "id", "text")):
            for row, text in db.execute(f"SELECT {key}, {column} FROM {table}").fetchall():
                new = text
                for old, general in pairs:
                    new = new.replace(json.dumps(old)[1:-1], general)
                new = re.sub(r'("hostname": *)"[^"]*"', r'\1"gpu-server"', new)
                if new != text:
                    db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (new, row))
    db.close()
