"""A program that pretends to train: it writes what a probe would, without torch and in no time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from profiler.record.start import record_command
from tests.record.running import environment, script

# ms of a step in stages: with no worker the wait is 20, with n workers 20 / n, with a kept batch none. The
# rest is 5, alone with the loader 0, and 2.5 without backward and optimizer. FAILS: with this it ends badly.
PROGRAM = """
    import json, os, sys, time

    spool, wanted = os.environ["STEPSCOPE_SPOOL"], json.loads(os.environ.get("STEPSCOPE_INTERVENE", "{}"))
    workers = wanted.get("num_workers", 0) if not os.environ.get("DEAF") else 0
    if os.environ.get("BREAKS") and wanted:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory")
    if os.environ.get("STUCK") and wanted:
        time.sleep(600)
    steps, pause = int(os.environ.get("STEPS", 60)), float(os.environ.get("PAUSE", 0))
    if os.environ.get("FAILS") in wanted:
        sys.exit("it broke")
    told = {} if os.environ.get("DEAF") else wanted
    data = 0 if told.get("cached_batch") or told.get("device_batch") else round(20e6 / max(1, workers))
    alone, half = told.get("loader_only"), told.get("forward_only")
    forward, other = (0, 0) if alone else (2000000, 500000)
    backward, optimizer = (0, 0) if alone or half else (2000000, 500000)
    steps, rest = alone or steps, forward + backward + optimizer + other
    with open(os.path.join(spool, "%d.0.spool" % os.getpid()), "a") as out:
        def put(*record):
            out.write(json.dumps(record) + "\\n")
            out.flush()

        t = time.monotonic_ns() - steps * (data + rest)
        put("hello", {"version": 1, "pid": os.getpid(), "ppid": os.getppid(), "t": t, "python": "3.11",
                      "argv": sys.argv, "rank": None, "world": None})
        put("torch", {"version": "2.9.0", "cuda": None, "device_count": None, "uuid": {}})
        put("loader", {"num_workers": workers, "batch_size": 8, "prefetch_factor": 2 if workers else None,
                       "pin_memory": False, "persistent_workers": False, "dataset": "Made", "train": True,
                       "site": "train.py:7"})
        for name, value in told.items():
            put("event", t, "intervention", "info", name, {"setting": name, "value": value})
        for k in range(steps):
            wall = data + rest
            put("step", k, t, t + wall, data, 0, forward, backward, optimizer, 1000000, 6000000, 8, 1, 0, 0,
                0)
            t += wall
            if pause or os.path.exists("slow"):
                time.sleep(pause or 5)
        print("step", steps, "loss", os.environ.get("LOSS", "0.25"), flush=True)
        put("bye", {"steps": steps})
    sys.exit(int(os.environ.get("STATUS", 0)))
"""


def recorded(folder: Path, **env: str) -> Path:
    """A run of the program in `folder`, by a recorder of its own."""
    import subprocess
    import sys

    path = script(folder, PROGRAM, "train.py")
    argv = record_command(output=folder / "run.stepscope", command=(sys.executable, str(path)))
    subprocess.run(argv, cwd=folder, env=environment(folder, **env), check=True, capture_output=True)
    with closing(sqlite3.connect(folder / "run.stepscope")) as file, file:
        # What else the machine did is not known of this run: other tests would decide about its remedy.
        file.execute("UPDATE track SET metric = 'host.core' WHERE metric = 'host.cpu'")
    return folder / "run.stepscope"
