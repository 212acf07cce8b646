"""The suggestion on Live is the one that verify tests, and what comes of the test is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app import experiment as module
from app.experiment import CANCELLED, Experiment
from app.live.state import Live
from app.live.verdict import prediction_text, query, remedy_text
from app.live.verify import outcome_parts
from app.widgets.sentence import Part
from profiler.experiments.plan import make_plan
from profiler.experiments.statistics import FAILS
from profiler.rules.base import Finding, Prediction, Remedy
from profiler.rules.verdict import Diagnosis, diagnose
from profiler.run.reader import Run
from profiler.run.results import append_result
from tests.app.desk import Desk
from tests.app.story import baseline
from tests.runs import make_run

NOT_TESTABLE = Finding("launch_bound", "Launches", "error", 9.0, remedy=Remedy("bucket_cap", 25, 100))
UNPREDICTED = Finding("prefetch", "Prefetch", "error", 9.0, remedy=Remedy("prefetch_factor", 2, 4))
THREADS = Finding("threads", "Threads", "warning", 1.0, remedy=Remedy("OMP_NUM_THREADS", None, 1),
                  prediction=Prediction("no_core_wait", 1.2, 1.1, 1.3, at_most=True))
RATIO = {"median": 1.84, "low": 1.79, "high": 1.9}


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    meta = {"cwd": str(tmp_path), "command": [sys.executable, "train.py"]}
    (tmp_path / "train.py").touch()
    return make_run(tmp_path / "r.stepscope", meta=meta, data_cpu=4.0)


def result(**changes: Any) -> dict[str, Any]:
    return {"kind": "verify", "remedy": {"setting": "num_workers", "from": 0, "to": 8}, "unit": "step",
            "prediction": {"speedup": 1.85, "low": 1.7, "high": 2.0, "at_most": False},
            "ratio": RATIO, "outcome": "improvement", "score": "hit", "reason": "", **changes}


@pytest.mark.parametrize("findings", [
    (NOT_TESTABLE, UNPREDICTED, THREADS), (UNPREDICTED, NOT_TESTABLE), (THREADS, UNPREDICTED)])
def test_what_is_suggested_is_what_verify_tests(
    run_file: Path, monkeypatch: pytest.MonkeyPatch, findings: tuple[Finding, ...]
) -> None:
    with Run.open(run_file) as run:
        found = Diagnosis(**{**vars(diagnose(run)), "findings": findings})
        monkeypatch.setattr("app.live.verdict.diagnose", lambda run: found)
        told, plan = query(run, Live()), make_plan(run, found)
    assert told.testable and told.remedy == remedy_text(plan.remedy.to_json())
    assert told.prediction == prediction_text(plan.finding)


def test_a_remedy_that_cannot_be_tried_is_still_told(
    run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Run.open(run_file) as run:
        found = Diagnosis(**{**vars(diagnose(run)), "findings": (NOT_TESTABLE,)})
        monkeypatch.setattr("app.live.verdict.diagnose", lambda run: found)
        told = query(run, Live())
    assert not told.testable and told.remedy == "bucket cap 25 \u2192 100"


def test_a_variable_keeps_its_name() -> None:
    assert remedy_text(Remedy("OMP_NUM_THREADS", None, 1).to_json()) == "OMP_NUM_THREADS unset \u2192 1"
    assert remedy_text(Remedy("pin_memory", False, True).to_json()) == "pinned memory off \u2192 on"


def test_a_test_of_something_else_does_not_stand_beside_the_suggestion(run_file: Path) -> None:
    with Run.open(run_file) as run:
        suggested = make_plan(run, diagnose(run)).remedy.to_json()
    append_result(run_file, "experiment", result(remedy=suggested))
    append_result(run_file, "experiment", result(remedy={"setting": "threads", "from": 2, "to": 1}))
    with Run.open(run_file) as run:
        assert query(run, Live()).experiment["remedy"] == suggested


def test_without_a_suggestion_the_newest_test_is_shown(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", stages={"forward": 30.0, "backward": 60.0}, workers=None)
    append_result(path, "experiment", result(remedy={"setting": "threads", "from": 2, "to": 1}))
    with Run.open(path) as run:
        told = query(run, Live())
    assert not told.remedy and told.experiment["remedy"]["setting"] == "threads"


@pytest.mark.parametrize(("changes", "said", "badge"), [
    ({"outcome": FAILS, "ratio": None, "reason": "with the remedy it ended with status 1"},
     "with the remedy it ended with status 1", ("Fails", "err")),
    ({"outcome": "unfinished", "ratio": None, "reason": "no pair counts", "score": "not scored"},
     "no pair counts", None),
    ({"outcome": "unfinished", "score": "not scored"}, "too few pairs to tell", None),
    ({"unit": "request", "score": "not scored"}, "for a request", None),
    ({"prediction": {"low": 1.0, "high": 1.2, "at_most": True}, "score": "not scored"}, "at most", None),
    ({"prediction": None, "score": "not scored"}, "measured 1.84", None),
])
def test_every_outcome_has_words(changes: dict[str, Any], said: str, badge: tuple[str, str] | None) -> None:
    parts, shown = outcome_parts(result(**changes))
    assert said in "".join(part.text for part in parts)
    assert shown == badge


def test_a_remedy_that_fails_is_shown(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    desk.panel.trial.verify.run = desk.document.path
    desk.panel.trial._on_result(result(outcome=FAILS, ratio=None, reason="with the remedy it was killed"))
    strip = desk.panel.strip
    assert strip._try.text() == "Tried workers 0 \u2192 8"
    assert strip._outcome.text() == "with the remedy it was killed" and strip.badge.text() == "Fails"


def test_long_advice_is_shortened_before_the_sentence(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    strip = desk.panel.strip
    strip.show_try([Part("A cause", "t1", 600)], [Part("word " * 200)])
    desk.qtbot.waitUntil(lambda: strip._outcome.width() < strip._outcome.sizeHint().width())
    assert strip._sentence.width() >= strip._sentence.sizeHint().width()
    desk.panel.resize(900, 700)
    desk.qtbot.waitUntil(lambda: strip.width() == 900)
    assert strip._outcome.width() > 100 and strip.verify.geometry().right() < 900


def test_a_damaged_result_does_no_harm(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    desk.panel.trial.verify.run = desk.document.path
    for damaged in ({"ratio": {"median": "x"}}, {"ratio": {}}, {"remedy": [1]},
                    {"prediction": {"low": None}}):
        desk.panel.trial._on_result(result(**damaged))
        assert "cannot be read" in desk.panel.strip._outcome.text()


def test_a_test_that_ends_late_says_nothing_of_another_run(desk: Desk, tmp_path: Path) -> None:
    desk.open(baseline(tmp_path / "r.stepscope", finish=True).path)
    trial = desk.panel.trial
    trial.verify.run = tmp_path / "other.stepscope"
    trial._on_result(result())
    trial._on_failed(CANCELLED["verify"])
    assert "measured" not in desk.panel.strip._outcome.text()
    assert CANCELLED["verify"] not in desk.panel.strip._outcome.text()


@pytest.mark.parametrize("measured", [True, False])
def test_cancelling_keeps_what_was_measured(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, measured: bool
) -> None:
    told = result(interrupted=True, ratio=RATIO if measured else None)
    script = ("import signal, sys\n"
              f"signal.signal(signal.SIGTERM, lambda *_: (print({json.dumps(told)!r}), sys.exit(130)))\n"
              "print('ready', file=sys.stderr, flush=True)\nsignal.pause()\n")
    monkeypatch.setattr(module, "own_command", lambda *args: [sys.executable, "-S", "-c", script])
    verify = Experiment()
    with qtbot.waitSignal(verify.progress):
        verify.start(Path("r.stepscope"))
    with qtbot.waitSignal(verify.finished if measured else verify.failed) as ended:
        verify.cancel()
    assert ended.args == [told if measured else CANCELLED["verify"]]
    verify.shut_down()
