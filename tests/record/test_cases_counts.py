"""Counters that do not go together, and figures that are no numbers (S11): through the real product."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.analysis.steps import load_steps, training_process
from profiler.model import STEP_EVALUATION, STEP_PARTIAL
from profiler.paths import own_command
from tests.record.looping import LONG, torch_script
from tests.record.running import PYTHON, environment, opened, record, script


def told(folder: Path) -> dict[str, Any]:
    """`diagnose --json`, read as strictly as other languages do."""
    done = subprocess.run(own_command("diagnose", "run.stepscope", "--json"), cwd=folder, timeout=LONG,
                          env=environment(folder), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    return found


# Three counters: of iterations, of optimizer calls, and the script's own, which runs on while it evaluates

@pytest.fixture(scope="module")
def counters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    folder = tmp_path_factory.mktemp("counters")
    path = torch_script(folder, """
        seen = calls = 0
        for epoch in range(2):
            for i, x in enumerate(DataLoader(Data(80), batch_size=2)):
                model(x).sum().backward()
                if i % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
                    calls += 1
                seen += 1
            with torch.no_grad():
                for x in DataLoader(Data(24), batch_size=2):
                    model(x)
                    seen += 1
        print(seen, calls)
        """)
    done = record(folder, "--", PYTHON, path, timeout=LONG)
    assert done.returncode == 0, done.stderr
    return folder, [int(word) for word in done.stdout.split()]


def test_s11_steps_are_iterations_whatever_else_is_counted(counters: tuple[Path, list[int]]) -> None:
    folder, (seen, calls) = counters
    assert (seen, calls) == (104, 20)
    with opened(folder) as run:
        steps = load_steps(run, training_process(run))
    whole = steps.flags & STEP_PARTIAL == 0
    assert (whole & steps.training).sum() == 80
    assert (steps.flags[whole] & STEP_EVALUATION != 0).sum() == 24
    assert np.nansum(steps.extras["optimizer_calls"]) == calls
    assert np.nansum(steps.extras["samples"][whole & steps.training]) == 160


def test_s11_what_is_told_goes_by_steps(counters: tuple[Path, list[int]]) -> None:
    """Neither by the fewer calls nor by the script's higher count."""
    found = told(counters[0])
    assert found["steps"]["total"] == 80 and found["steps"]["left_out"]["evaluation"] == 24
    assert found["whole_run"]["steps"] == 80
    samples_per_s = found["throughput"]["value"]
    assert samples_per_s == pytest.approx(2e3 / found["step_ms"]["mean"], rel=0.01)


# Figures that are no numbers

NONE = """
    import json, os, sys, time
    spool, pid, now = os.environ["STEPSCOPE_SPOOL"], os.getpid(), time.monotonic_ns
    sent = open(f"{spool}/{pid}.0.spool", "ab", buffering=0)
    def send(*record):
        sent.write(json.dumps(record).encode() + b"\\n")
    send("hello", {"version": 1, "pid": pid, "ppid": 1, "t": now(), "python": "3.11.2", "argv": ["x"],
                   "rank": None, "world": None})
    nan, inf = float("nan"), float("inf")
    send("loader", {"dataset": "n/a", "batch_size": nan, "num_workers": inf, "train": True})
    last = now()
    for i in range(60):
        time.sleep(0.002)
        t = now()
        send("step", i, last, t, 1000, 200, 300, 400, 50, 7, 8, 32, 1, 2, 9, 0)
        for odd in (nan, inf, -inf, "n/a"):
            send("step", 1000 + i, last, t, odd, 200, 300, 400, 50, 7, 8, 32, 1, 2, 9, 0)
            send("step", 1000 + i, last, t, 1000, 200, 300, 400, 50, 7, 8, odd, 1, 2, 9, 0)
        sent.write(b'["step", 1, 2, 3, nan, 1e999, n/a]\\n')
        send("event", t, "mark", "info", "loss", {"loss": odd, "again": nan})
        print(f"step {i} loss nan", flush=True)
        last = t
    """


@pytest.fixture(scope="module")
def none(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("none")
    done = record(folder, "--", PYTHON, "-S", str(script(folder, NONE)), timeout=LONG)
    assert done.returncode == 0 and done.stdout.count(b"loss nan") == 60, done.stderr
    return folder


def test_s11_what_is_no_number_is_missing_in_the_run(none: Path) -> None:
    with opened(none) as run:
        for track in run.tracks:
            assert np.isfinite(run.values(track.id)[1]).all(), track.metric
        (index,) = run.find("step.index")
        kept = run.values(index.id)[1]
        assert kept[kept < 1000].tolist() == list(range(60))  # the whole ones are all there
        said = [process.properties for process in run.processes] + [event.data for event in run.events()]
        json.dumps(said, allow_nan=False)
        (process,) = run.processes
        assert process.properties["damaged_records"] >= 60
        assert process.properties["loader"]["batch_size"] is None


def test_s11_no_word_of_nan_in_what_is_told(none: Path) -> None:
    assert told(none)["steps"]["total"] > 0
    for argv in (["diagnose", "run.stepscope"], ["report", "run.stepscope", "-o", "r.html"]):
        done = subprocess.run(own_command(*argv), cwd=none, env=environment(none), capture_output=True,
                              text=True, timeout=LONG, check=True)
        page = (none / "r.html").read_text("utf-8") if argv[0] == "report" else done.stdout
        text = re.sub("<(style|script).*?</", "", page, flags=re.DOTALL).lower()
        assert not set(re.split(r"[^a-z0-9]+", text)) & {"nan", "inf", "infinity"}
