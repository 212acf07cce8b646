"""The open run and its questions: one worker thread, the newest request per key."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from app.document import Document
from app.queries import Queries
from profiler.run.reader import Run
from tests.app.story import Story
from tests.runs import make_run


@pytest.fixture
def queries(qtbot: QtBot) -> object:
    result = Queries()
    yield result
    result.close()


@pytest.fixture
def document(qtbot: QtBot) -> object:
    result = Document()
    yield result
    result.shutdown()


def test_answers_come_back_to_this_thread(queries: Queries, qtbot: QtBot) -> None:
    threads: list[QThread] = []
    queries.submit("a", lambda: threads.append(QThread.currentThread()) or 5,
                   lambda value: threads.append(QThread.currentThread()) or threads.append(value))  # type: ignore
    qtbot.waitUntil(lambda: len(threads) == 3)
    assert threads[0] is not threads[1] is QThread.currentThread()
    assert threads[2] == 5


def test_only_the_newest_of_a_key_is_answered(queries: Queries, qtbot: QtBot) -> None:
    gate, begun = threading.Event(), threading.Event()
    answers: list[object] = []

    def slow() -> str:
        begun.set()
        gate.wait(10)
        return "slow"

    queries.submit("other", slow, answers.append)
    assert begun.wait(10)
    for i in range(50):
        queries.submit("a", lambda i=i: i, answers.append)
    queries.submit("b", lambda: "b", answers.append)
    assert queries.busy("a")
    gate.set()
    qtbot.waitUntil(lambda: len(answers) == 3)
    assert answers == ["slow", 49, "b"]
    assert not queries.busy("a")


def test_an_error_reaches_whoever_asked_and_the_thread_lives_on(queries: Queries, qtbot: QtBot) -> None:
    errors: list[Exception] = []
    queries.submit("a", lambda: 1 // 0, lambda _: None, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 1)
    with qtbot.waitSignal(queries.failed) as signal:
        queries.submit("b", lambda: [][0], lambda _: None)
    assert signal.args[0] == "b"
    answers: list[object] = []
    queries.submit("c", lambda: "alive", answers.append)
    qtbot.waitUntil(lambda: answers == ["alive"])


def test_what_is_forgotten_gets_no_answer(queries: Queries, qtbot: QtBot) -> None:
    gate = threading.Event()
    answers: list[object] = []
    queries.submit("a", lambda: gate.wait(10), answers.append)
    queries.submit("b", lambda: "b", answers.append)
    queries.forget()
    gate.set()
    queries.submit("c", lambda: "c", answers.append)
    qtbot.waitUntil(lambda: bool(answers))
    assert answers == ["c"]


def test_a_finished_run(document: Document, qtbot: QtBot, tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", steps=20)
    with qtbot.waitSignal(document.opened):
        document.open(path)
    assert document.info is not None
    assert (document.info.name, document.info.state, document.recording) == ("planned", "finished", False)
    answers: list[object] = []
    document.query("n", lambda run: len(run.values(run.find("step.wall")[0].id)[0]), answers.append)
    qtbot.waitUntil(lambda: answers == [20])
    with qtbot.waitSignal(document.closed):
        document.close()
    assert document.info is None and document.path is None
    document.query("n", lambda run: 1, answers.append)  # no run: no question
    assert not document.busy("n")


@pytest.mark.parametrize(("content", "word"), [(b"", ""), (b"not a run at all", ""), (None, "")])
def test_what_cannot_be_opened_is_told(
    document: Document, qtbot: QtBot, tmp_path: Path, content: bytes | None, word: str
) -> None:
    path = tmp_path / "x.stepscope"
    if content is not None:
        path.write_bytes(content)
    with qtbot.waitSignal(document.failed) as signal:
        document.open(path)
    assert "x.stepscope" in signal.args[0]
    assert document.path is None


def test_a_growing_run_tells_and_its_end_too(document: Document, qtbot: QtBot, tmp_path: Path) -> None:
    import os

    story = Story(tmp_path / "r.stepscope")
    story.writer.set_meta("recorder_pid", os.getpid())
    story.advance(5.0)
    with qtbot.waitSignal(document.opened):
        document.open(story.path)
    assert document.recording
    before = document.info.seconds if document.info else 0.0
    with qtbot.waitSignal(document.grew):
        story.advance(7.0)
    assert document.info is not None and document.info.seconds > before
    with qtbot.waitSignal(document.ended):
        story.finish(7.0)
    assert not document.recording


def test_another_run_takes_the_place_of_the_first(document: Document, qtbot: QtBot, tmp_path: Path) -> None:
    paths = [make_run(tmp_path / f"{i}.stepscope", steps=5, meta={"name": f"run {i}"}) for i in range(2)]
    with qtbot.waitSignal(document.opened):
        document.open(paths[0])
    with qtbot.waitSignals([document.closed, document.opened]):
        document.open(paths[1])
    assert document.info is not None and document.info.name == "run 1"


def test_the_run_is_read_on_the_worker_only(document: Document, qtbot: QtBot, tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", steps=5)
    with qtbot.waitSignal(document.opened):
        document.open(path)
    threads: set[int] = set()
    answers: list[object] = []

    def ask(run: Run) -> None:
        threads.add(threading.get_ident())

    document.query("a", ask, answers.append)
    qtbot.waitUntil(lambda: bool(answers))
    assert threading.get_ident() not in threads
