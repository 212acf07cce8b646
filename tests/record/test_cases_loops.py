"""Start-up that is taken for data wait, data given twice (S07), and windows without a step (S08)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.facts import gather
from profiler.analysis.steps import load_steps, training_process
from profiler.model import STEP_EPOCH_FIRST
from profiler.rules.verdict import diagnose
from tests.record.looping import LONG, events_of, torch_script, wait
from tests.record.running import PYTHON, environment, opened, record, recording

# S07: start-up is no data wait


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three epochs whose workers need long to start; then iterable data: given twice, and divided."""
    folder = tmp_path_factory.mktemp("epochs")
    path = torch_script(folder, """
        class Stream(IterableDataset):
            def __init__(self, divided):
                self.divided = divided
            def __iter__(self):
                info = torch.utils.data.get_worker_info()
                first, step = (info.id, info.num_workers) if self.divided else (0, 1)
                return iter([torch.full((4,), float(i)) for i in range(first, 12, step)])

        def slowly(worker):
            time.sleep(0.6)

        loader = DataLoader(Data(32), batch_size=2, num_workers=1, worker_init_fn=slowly)
        for epoch in range(3):
            train(loader, lambda step: time.sleep(0.015))
        total = 0
        for divided in (True, False):
            total = sum(len(x) for x in DataLoader(Stream(divided), batch_size=2, num_workers=2))
            print(total)
        same = DataLoader([torch.zeros(4)] * 12, batch_size=2, num_workers=2)
        assert sum(len(x) for x in same) == 12
        """)
    done = record(folder, "--", PYTHON, path, timeout=LONG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [b"12", b"24"]
    return folder


def test_s07_the_first_wait_of_each_epoch_is_apart(epochs: Path) -> None:
    with opened(epochs) as run:
        process = training_process(run)
        steps = load_steps(run, process)
        facts = gather(run, process)
        told = diagnose(run).to_json()
    first = (steps.flags & STEP_EPOCH_FIRST).astype(bool)
    assert list(steps.index[first])[:3] == [0, 16, 32]
    assert (steps.stages["data"][first][:3] > 500e6).all()  # they start anew at each epoch
    assert facts.summary is not None
    assert facts.summary.stages["data"] < 100e6
    assert facts.summary.epochs.later == 2
    assert min(facts.summary.epochs.first_wait_ns or 0, facts.summary.epochs.later_wait_ns) > 500e6
    assert told["stages_ms"]["data"] < 100
    assert any(finding["rule"] == "epoch_start" for finding in told["findings"])


def test_s07_no_advice_to_add_workers_from_start_up(epochs: Path) -> None:
    with opened(epochs) as run:
        told = diagnose(run).to_json()
    remedies = [finding["remedy"] for finding in told["findings"] if finding["remedy"]]
    # a busy machine may well advise fewer of them
    assert not [r for r in remedies if r["setting"] == "num_workers" and r["to"] > r["from"]]
    assert told["verdict"] != "input_bound"


def test_s07_iterable_data_that_each_worker_gives_is_flagged(epochs: Path) -> None:
    found = events_of(epochs, "duplicated_data")
    assert [event.data["workers"] for event in found] == [2]
    assert "get_worker_info" in found[0].text and found[0].severity == "warning"
    with opened(epochs) as run:
        assert any("give the same data" in note for note in diagnose(run).to_json()["notes"])


def test_s07_no_share_of_a_length_that_nobody_knows(epochs: Path) -> None:
    """Only a workload of ours says how many steps it makes; a loader's length is not believed."""
    from app.live.side import query
    from app.live.state import Live

    with opened(epochs) as run:
        assert query(run, Live()).steps_planned is None


# S08: a window in which nothing goes on


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The script blocks in one call, for as long as nobody writes into the pipe, once a window is open."""
    folder = tmp_path_factory.mktemp("windowed")
    path = torch_script(folder, """
        from torch.autograd import profiler
        os.mkfifo("pipe")
        seen = []

        def between(step):
            time.sleep(0.002)
            if profiler._is_profiler_enabled and not seen:
                seen.append(step)
                open("pipe").read()
                print("closed" if not profiler._is_profiler_enabled else "open", flush=True)

        train(DataLoader(Data(160), batch_size=2), between)
        """)
    env = environment(folder, STEPSCOPE_STILL="1")
    seen: dict[str, Any] = {"folder": folder}
    with recording(folder, "--trace-steps", "4", "--", PYTHON, path, env=env, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE) as process:
        wait(process, lambda: events_of(folder, "trace_still"))

        def stored() -> list[Any]:
            with opened(folder) as run:
                return [item for item in run.attachments() if item.kind == "kineto"]

        seen["trace"] = wait(process, stored)  # while the script still blocks
        (folder / "pipe").write_text("go")
        seen["stdout"], stderr = process.communicate(timeout=LONG)
        seen["stderr"] = stderr.decode()
        seen["status"] = process.returncode
    return seen


def test_s08_a_window_without_progress_is_closed_and_marked(windowed: dict[str, Any]) -> None:
    (event,) = events_of(windowed["folder"], "trace_still")
    assert event.severity == "warning" and event.data["seconds"] >= 1
    (trace,) = windowed["trace"]
    assert trace.properties["note"].startswith("no step for ") and trace.properties["valid"]


def test_s08_the_job_lives_on(windowed: dict[str, Any]) -> None:
    assert (windowed["stdout"], windowed["status"]) == (b"closed\n", 0)
    with opened(windowed["folder"]) as run:
        steps = load_steps(run, training_process(run))
    assert len(steps) == 80


def test_s08_a_run_without_the_profiler_is_offered(windowed: dict[str, Any]) -> None:
    told = [line for line in windowed["stderr"].splitlines() if "profiler window" in line]
    assert len(told) == 1 and "record without --trace-steps" in told[0]
    with opened(windowed["folder"]) as run:
        assert any("record without --trace-steps" in note for note in diagnose(run).to_json()["notes"])


@pytest.fixture
def healthy(tmp_path: Path) -> Callable[..., Path]:
    def run(*args: str) -> Path:
        path = torch_script(tmp_path, "train(DataLoader(Data(160), batch_size=2, num_workers=1))\n")
        done = record(tmp_path, *args, "--", PYTHON, path, timeout=LONG)
        assert (done.returncode, done.stdout) == (0, b"")
        assert done.stderr.decode().splitlines() == [f"stepscope: run file: {tmp_path / 'run.stepscope'}"]
        return tmp_path
    return run


def test_s06_s08_a_healthy_run_with_a_window_says_nothing(healthy: Callable[..., Path]) -> None:
    folder = healthy("--trace-steps", "4")
    assert not events_of(folder, "no_step", "worker_died", "trace_still", "duplicated_data", "steps_again")
    with opened(folder) as run:
        (trace,) = (item for item in run.attachments() if item.kind == "kineto")
        assert trace.properties["note"] == ""
