"""Loader workers that die, and loops that wait for ever (S06): through the real product."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from profiler.paths import own_command
from profiler.rules.verdict import diagnose
from tests.record.looping import LONG, events_of, torch_script, wait
from tests.record.running import PYTHON, environment, opened, record, recording

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

        # By value: a worker that is gone can hand over no tensor any more, and the loop would end by that.
        def loader(*data):
            return DataLoader(Data(*data), batch_size=2, num_workers=2,
                              collate_fn=lambda items: torch.stack(items).tolist())

        train(loader(40))
        for how in (signal.SIGBUS, 7):
            try:
                train(loader(400, end(how)))
            except RuntimeError as error:
                print("caught", flush=True)
        train(loader(40))
        train(loader(400, end(signal.SIGKILL)))
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
    with (folder / "told").open("wb") as told, \
            recording(folder, "--", PYTHON, path, env=env, stderr=told) as process:
        wait(process, lambda: "No step" in (folder / "told").read_text("utf-8"))
        process.terminate()
        status = process.wait(timeout=LONG)
    return folder, (folder / "told").read_text("utf-8"), status


def test_s06_a_loop_that_never_went_on_is_said_at_the_end(endless: tuple[Path, str, int]) -> None:
    folder, stderr, _ = endless
    told = [line for line in stderr.splitlines() if line.startswith("stepscope: No step")]
    assert len(told) == 2 and all("waits for data" in line for line in told)
    with opened(folder) as run:
        assert any("No step" in note for note in diagnose(run).to_json()["notes"])
    done = subprocess.run(own_command("diagnose", str(folder / "run.stepscope")), capture_output=True,
                          text=True, timeout=LONG, check=True)
    assert "No step of process" in done.stdout
