"""The window's recorder: a real one on tiny commands, and what it does when things end badly."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.document import Document
from app.panels.live import LivePanel
from app.recorder import Recorder, State
from app.spec import LaunchSpec
from profiler.run.reader import Run

LONG = 40_000  # ms: the machine may be busy
TRAINING = """
import torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4096, 8)), batch_size=4)
print("begin", flush=True)
import time
for epoch in range(100):
    for (x,) in data:
        time.sleep(0.005)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""


@pytest.fixture
def recorder(qtbot: QtBot) -> Iterator[Recorder]:
    result = Recorder()
    yield result
    result.shutdown()


def script(text: str, **more: object) -> LaunchSpec:
    return LaunchSpec(command=(sys.executable, "-c", text), **more)  # type: ignore[arg-type]


def test_a_command_is_recorded_to_its_end(recorder: Recorder, qtbot: QtBot) -> None:
    states: list[State] = []
    recorder.state_changed.connect(states.append)
    with qtbot.waitSignal(recorder.finished, timeout=LONG) as signal_:
        recorder.start(script("print('hello from the target')", name="greeting"))
    path, end = signal_.args
    assert end["code"] == 0
    assert states == [State.STARTING, State.RECORDING, State.IDLE]
    with Run.open(path) as run:
        assert run.state == "finished"
        assert run.meta["name"] == "greeting"
        assert b"hello from the target" in b"".join(data for _, _, data in run.output())


def test_the_working_directory_and_the_environment_are_the_commands(
    recorder: Recorder, qtbot: QtBot, tmp_path: Path
) -> None:
    text = "import os; print(os.getcwd(), os.environ['TALE'])"
    with qtbot.waitSignal(recorder.finished, timeout=LONG) as signal_:
        recorder.start(script(text, cwd=tmp_path, environment={"TALE": "grimm"}))
    with Run.open(signal_.args[0]) as run:
        output = b"".join(data for _, _, data in run.output()).decode()
    assert f"{tmp_path} grimm" in output


def test_its_status_is_told(recorder: Recorder, qtbot: QtBot) -> None:
    with qtbot.waitSignal(recorder.finished, timeout=LONG) as signal_:
        recorder.start(script("raise SystemExit(7)"))
    assert signal_.args[1]["code"] == 7


def test_stop_is_acknowledged_at_once_and_leaves_nothing(recorder: Recorder, qtbot: QtBot) -> None:
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(script("import time; time.sleep(600)"))
    children = psutil.Process().children(recursive=True)
    assert children
    with qtbot.waitSignal(recorder.finished, timeout=LONG):
        recorder.stop()
        assert recorder.state is State.STOPPING
        recorder.stop()  # pressed twice
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert not alive and gone


def test_a_command_that_ignores_the_stop_is_killed(recorder: Recorder, qtbot: QtBot) -> None:
    text = ("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)")
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(script(text))
    assert recorder.run_path is not None
    with Run.open(recorder.run_path) as run:
        qtbot.waitUntil(lambda: run.refresh() and bool(run.output()), timeout=LONG)
    children = psutil.Process().children(recursive=True)
    with qtbot.waitSignal(recorder.finished, timeout=LONG):
        recorder.stop()
    assert not psutil.wait_procs(children, timeout=60)[1]


def test_what_cannot_run_is_told_in_one_line(recorder: Recorder, qtbot: QtBot) -> None:
    with qtbot.waitSignal(recorder.failed, timeout=LONG) as signal_:
        recorder.start(LaunchSpec(command=("/no/such/program",)))
    assert "/no/such/program" in signal_.args[0]
    assert not recorder.active


def test_a_recorder_that_cannot_be_started(
    recorder: Recorder, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LaunchSpec, "argv", lambda self: ["/no/such/python"])
    with qtbot.waitSignal(recorder.failed, timeout=LONG) as signal_:
        recorder.start(script("pass"))
    assert "cannot be started" in signal_.args[0]


def test_a_killed_recorder_leaves_a_partial_run(recorder: Recorder, qtbot: QtBot) -> None:
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(script("import time; time.sleep(600)"))
    path = recorder.run_path
    assert path is not None and recorder._process is not None
    children = psutil.Process().children(recursive=True)
    with qtbot.waitSignal(recorder.failed, timeout=LONG) as failed:
        os.kill(recorder._process.processId(), signal.SIGKILL)
    assert failed.args[0].startswith("the recorder was killed by signal 9. The command goes on as process ")
    assert int(failed.args[0].splitlines()[0].split()[-1]) in [child.pid for child in children]
    with Run.open(path) as run:
        assert run.state == "partial"
    for child in children:  # a user's command goes on unharmed; here it is ours to end
        if child.is_running():
            child.kill()


def test_only_one_recording_at_a_time(recorder: Recorder, qtbot: QtBot) -> None:
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(script("import time; time.sleep(600)"))
    with pytest.raises(RuntimeError):
        recorder.start(script("pass"))


def test_closing_while_recording_leaves_nothing_behind(qtbot: QtBot) -> None:
    recorder = Recorder()
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(script("import time; time.sleep(600)"))
    children = psutil.Process().children(recursive=True)
    path = recorder.run_path
    assert path is not None
    recorder.shutdown()
    assert not psutil.wait_procs(children, timeout=60)[1]
    with Run.open(path) as run:
        assert run.state == "finished"


def test_marks_and_input_reach_the_command(recorder: Recorder, qtbot: QtBot) -> None:
    with qtbot.waitSignal(recorder.started, timeout=LONG):
        recorder.start(script("print('you said', input('> '), flush=True)"))
    recorder.mark("here")
    with qtbot.waitSignal(recorder.finished, timeout=LONG) as signal_:
        recorder.send_input("good morning\n")
    with Run.open(signal_.args[0]) as run:
        output = b"".join(data for _, _, data in run.output())
        assert b"you said good morning" in output
        assert "here" in [event.text for event in run.events() if event.kind == "mark"]


def test_names_of_what_is_started() -> None:
    assert LaunchSpec(workload="input_starved").title == "input_starved"
    assert LaunchSpec(command=("python", "-u", "dir/train.py", "--lr", "1")).title == "train.py"
    assert LaunchSpec(watch=True).title == "this machine"
    assert LaunchSpec(watch=True, pid=5).title == "process 5"
    assert LaunchSpec(name="mine", watch=True).title == "mine"


def test_the_command_line_of_a_spec() -> None:
    argv = LaunchSpec(command=("python", "train.py"), capture="trace", trace_steps=12, rate_hz=20).argv()
    assert argv[-3:] == ["--", "python", "train.py"]
    assert "--control" in argv and "--trace-steps=12" in argv and "--rate=20" in argv
    assert not any(a.startswith("--trace") for a in LaunchSpec(command=("x",), trace_steps=12).argv())
    assert "monitor" in LaunchSpec(watch=True, pid=5).argv()


def test_a_training_script_from_run_to_stop(qtbot: QtBot, dark: None) -> None:
    """The whole way: a plain loop, host charts first, then steps, the stage table, and the end."""
    pytest.importorskip("torch")
    document, recorder = Document(), Recorder()
    panel = LivePanel(document, recorder)
    qtbot.addWidget(panel)
    panel.resize(1536, 940)
    panel.show()
    recorder.started.connect(document.open)
    recorder.start(script(TRAINING))
    begun = time.monotonic()
    qtbot.waitUntil(lambda: "activity" in panel.body.charts.rows, timeout=LONG)
    qtbot.waitUntil(lambda: len(panel.body.side.data.stages) > 3, timeout=2 * LONG)
    assert panel.bar.stop.isVisible() and panel.bar.stop.isEnabled()
    recorder.stop()
    assert panel.bar.stop.text() == "Stopping\u2026" and not panel.bar.stop.isEnabled()
    qtbot.waitUntil(lambda: not recorder.active, timeout=LONG)
    qtbot.waitUntil(lambda: not document.recording, timeout=LONG)
    assert not panel.bar.stop.isVisible()
    assert panel.bar.ending.text() == "stopped"
    assert panel.output.terminal.lines[0] == "begin"
    assert time.monotonic() > begun
    panel.shut_down()
    recorder.shutdown()
    document.shutdown()
