"""Loaders in trouble, as known from the field: dead workers, loops that wait for ever (S06), start-up that is
taken for data wait (S07), and a profiler window in which nothing goes on (S08). Through the real product."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.facts import gather
from profiler.analysis.steps import load_steps, training_process
from profiler.model import STEP_EPOCH_FIRST, Event
from profiler.paths import own_command
from profiler.rules.verdict import diagnose
from tests.record.running import PYTHON, environment, opened, record, recording, script
from tests.waiting import until

LONG = 120.0  # s: importing torch alone takes ten on a busy machine

COMMON = """
    import os, pathlib, signal, sys, time
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    def wait_for(name):
        while not pathlib.Path(name).exists():
            time.sleep(0.02)

    class Data(Dataset):
        def __init__(self, n, act=None, at=20):
            self.n, self.act, self.at = n, act, at
        def __len__(self):
            return self.n
        def __getitem__(self, i):
            if i == self.at and self.act is not None:
                self.act()
            time.sleep(0.002)
            return torch.randn(4)

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader, between=lambda step: None):
        for step, x in enumerate(loader):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            between(step)
    """


def torch_script(folder: Path, text: str) -> str:
    import textwrap

    return str(script(folder, textwrap.dedent(COMMON) + textwrap.dedent(text)))


def events_of(folder: Path, *kinds: str) -> list[Event]:
    if not (folder / "run.stepscope").exists():
        return []
    with opened(folder) as run:
        return [event for event in run.events() if event.kind in kinds]


def wait(process: subprocess.Popen[bytes], condition: Callable[[], Any]) -> Any:
    """The first true value of `condition()` while the recording runs."""
    def look() -> Any:
        value = condition()
        assert value or process.poll() is None, "the recording has ended"
        return value

    return until(look, LONG)


# S06: workers that die


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    """Three loaders whose workers die, each in another way, a healthy one, and one that ends the script."""
    folder = tmp_path_factory.mktemp("died")
    path = torch_script(folder, """
        def end(how):
            def act():
                if not isinstance(how, signal.Signals):
                    os._exit(how)
                os.kill(os.getpid(), how)
            return act

        train(DataLoader(Data(40), batch_size=2, num_workers=2))
        for how in (signal.SIGBUS, 7):
            try:
                train(DataLoader(Data(400, end(how)), batch_size=2, num_workers=2))
            except RuntimeError as error:
                print("caught", flush=True)
        train(DataLoader(Data(40), batch_size=2, num_workers=2))
        train(DataLoader(Data(400, end(signal.SIGKILL)), batch_size=2, num_workers=2))
        """)
    return folder, record(folder, "--", PYTHON, path, timeout=LONG)


def test_s06_dead_workers_are_told_one_by_one(died: tuple[Path, Any]) -> None:
    found = events_of(died[0], "worker_died")
    assert [(event.data["code"], event.data["signal"], event.data["workers"]) for event in found] == [
        (-7, "SIGBUS", 2), (7, None, 2), (-9, "SIGKILL", 2)]
    assert all(event.severity == "error" for event in found)
    # which one: the worker that got the item, and its process. Of batches of two the 11th is worker 0's
    assert [event.data["worker"] for event in found] == [0, 0, 0]
    assert all(f"worker 1 of 2 (process {event.data['pid']})" in event.text for event in found)
    assert len({event.data["pid"] for event in found}) == 3


def test_s06_the_cause_is_explained(died: tuple[Path, Any]) -> None:
    bus, status, kill = (event.text for event in events_of(died[0], "worker_died"))
    assert "shared memory" in bus and "/dev/shm holds" in bus and "--shm-size" in bus
    assert "limit of memory" in kill or "memory runs out" in kill or "for want of memory" in kill
    assert "memory" not in status and status.endswith("ended with status 7")


def test_s06_the_command_ends_as_without_us_and_the_user_is_told(died: tuple[Path, Any]) -> None:
    folder, done = died
    assert done.returncode == 1 and done.stdout == b"caught\n" * 2
    assert b"RuntimeError: DataLoader worker" in done.stderr  # torch found them too: we reap nobody
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("stepscope: Loader worker")]
    assert len(told) == 3 and "SIGBUS" in told[0] and "SIGKILL" in told[2]
    with opened(folder) as run:
        notes = diagnose(run).to_json()["notes"]
    assert any("was killed by SIGBUS" in note for note in notes)


# S06: loops that wait for ever


@pytest.fixture(scope="module")
def stood(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A worker that waits at an item, then the main process inside a step; each until told to go on."""
    folder = tmp_path_factory.mktemp("stood")
    path = torch_script(folder, """
        def hang(step):
            if step == 20:
                wait_for("go2")
            time.sleep(0.005)
        train(DataLoader(Data(60, lambda: wait_for("go1")), batch_size=2, num_workers=1))
        train(DataLoader(Data(60), batch_size=2), hang)
        wait_for("go3")  # after the loop
        """)
    seen: dict[str, Any] = {"folder": folder}
    env = environment(folder, STEPSCOPE_STILL="1")
    with recording(folder, "--", PYTHON, path, env=env, stderr=subprocess.PIPE) as process:
        for number in (1, 2, 3):
            wait(process, lambda: len(events_of(folder, "no_step")) >= number)  # noqa: B023
            if number == 1:
                from app.live.state import Live
                from app.live.verdict import query

                with opened(folder) as run:
                    live = Live()
                    live.refresh(run)
                    seen["live"] = query(run, live)
            (folder / f"go{number}").touch()
            if number < 3:
                wait(process, lambda: len(events_of(folder, "steps_again")) >= number)  # noqa: B023
        assert process.stderr is not None
        seen["stderr"] = process.stderr.read().decode()
        seen["status"] = process.wait(timeout=LONG)
    return seen


def test_s06_no_step_for_many_medians_is_said_while_it_lasts(stood: dict[str, Any]) -> None:
    waits, inside, after = events_of(stood["folder"], "no_step")
    for event in (waits, inside, after):
        assert event.data["seconds"] >= max(1.0, 20 * event.data["usual_seconds"])
        assert event.data["usual_seconds"] > 0
    assert waits.data["stage"] == "data" and "waits for data" in waits.text
    assert inside.data["stage"] == "" and "between the stages" in inside.text
    assert "script.py:" in waits.data["site"] and any("wait_for" in line for line in inside.data["lines"])
    assert (waits.severity, inside.severity) == ("warning", "warning")
    # a loop that is over does not stand still: nobody is alarmed
    assert after.severity == "info" and after.data["inside"] is False


def test_s06_it_is_over_when_steps_come_again(stood: dict[str, Any]) -> None:
    again = events_of(stood["folder"], "steps_again")
    assert len(again) == 2
    for event, before in zip(again, events_of(stood["folder"], "no_step"), strict=False):
        assert event.t_ns > before.t_ns and event.data["seconds"] >= before.data["seconds"] - 0.5
    assert stood["status"] == 0
    with opened(stood["folder"]) as run:
        assert not [note for note in diagnose(run).to_json()["notes"] if "No step" in note]


def test_s06_the_user_is_told_at_once_and_in_the_window(stood: dict[str, Any]) -> None:
    told = [line for line in stood["stderr"].splitlines() if "No step" in line]
    assert len(told) == 2 and "waits for data" in told[0]
    live = stood["live"]
    assert live.title == "Standing still" and live.word == "unknown"
    assert "".join(text for text, _ in live.sentence).startswith("No step for ")
    assert not live.remedy and not live.testable


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """A worker that waits for ever; ended from outside."""
    folder = tmp_path_factory.mktemp("endless")
    path = torch_script(folder, """
        train(DataLoader(Data(60, lambda: time.sleep(10000)), batch_size=2, num_workers=1))
        """)
    env = environment(folder, STEPSCOPE_STILL="1")
    with recording(folder, "--", PYTHON, path, env=env, stderr=subprocess.PIPE) as process:
        wait(process, lambda: events_of(folder, "no_step"))
        process.terminate()
        assert process.stderr is not None
        stderr = process.stderr.read().decode()
        return folder, stderr, process.wait(timeout=LONG)


def test_s06_a_loop_that_never_went_on_is_said_at_the_end(endless: tuple[Path, str, int]) -> None:
    folder, stderr, _ = endless
    told = [line for line in stderr.splitlines() if line.startswith("stepscope: No step")]
    assert len(told) == 2 and all("waits for data" in line for line in told)
    with opened(folder) as run:
        assert any("No step" in note for note in diagnose(run).to_json()["notes"])
    done = subprocess.run(own_command("diagnose", str(folder / "run.stepscope")), capture_output=True,
                          text=True, timeout=LONG, check=True)
    assert "No step of process" in done.stdout


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
    settings = [finding["remedy"]["setting"] for finding in told["findings"] if finding["remedy"]]
    assert "num_workers" not in settings and told["verdict"] != "input_bound"


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
        assert trace.properties["note"] == "" and len(json.dumps(trace.properties)) > 2
