"""What Diagnose shows of a run is what the analysis, the terminal and Live say of it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.diagnose import code, ratios, step
from app.diagnose.data import DiagnoseData
from app.diagnose.query import query
from app.live.state import Live
from app.live.verdict import query as live_query
from app.tokens import DARK
from profiler.cli import main
from profiler.experiments.plan import make_plan
from profiler.experiments.statistics import FAILS
from profiler.rules.base import Finding, Prediction, Remedy
from profiler.rules.verdict import Diagnosis, diagnose
from profiler.rules.words import evidence
from profiler.run.reader import Run
from profiler.run.results import append_result
from tests.app.diagnosing import CEILINGS, RESULT
from tests.app.story import baseline, without_gpu
from tests.reference import TRACES
from tests.runs import make_run


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return baseline(tmp_path_factory.mktemp("story") / "r.stepscope", finish=True).path


def asked(path: Path) -> DiagnoseData:
    with Run.open(path) as run:
        return query(run, Live())


def known(path: Path) -> Diagnosis:
    with Run.open(path) as run:
        return diagnose(run)


def numbers(text: str) -> float:
    return float(text.replace("\u00a0", "").rstrip("%"))


def test_the_verdict_is_that_of_live_and_of_the_terminal(story: Path, capsys: Any) -> None:
    told, found = asked(story), known(story)
    with Run.open(story) as run:
        live = live_query(run, Live())
    assert main(["diagnose", str(story)]) == 0
    printed = capsys.readouterr().out
    assert (told.word, told.title, told.confidence, told.stage) == (
        live.word, live.title, live.confidence, live.stage)
    assert told.title in printed and told.reason.lower()[:60] in printed.lower()
    assert f"Confidence {told.confidence}" in printed
    assert told.also == ", ".join(word.replace("_", "-") for word in found.decision.also)
    assert [f.title for f in told.findings] == [f.title for f in found.findings]
    assert all(f"{f.rank}. {f.title}" in printed for f in told.findings)
    assert told.findings[0].remedy == live.remedy and live.remedy


def test_every_number_of_a_finding_is_the_rule_s(story: Path) -> None:
    told, found = asked(story), known(story)
    for shown, finding in zip(told.findings, found.findings, strict=True):
        for lines, items in ((shown.evidence, finding.evidence),
                             (shown.counter, finding.counter_evidence)):
            assert [(o.text, o.value, o.note) for o in lines] == [evidence(vars(e)) for e in items]
    for rows, causes in ((told.ruled_out, found.ruled_out), (told.lacks, found.lacks)):
        names = [name for row in rows for name in (row.note.split(", ") if row.note else [row.text])]
        assert sorted(names) == sorted(title for title, _ in causes)
        assert all((row.text, row.value) in causes for row in rows if not row.note)


def test_the_stages_sum_to_the_step(story: Path) -> None:
    rows = asked(story).parts
    assert rows[-1].name == "step" and rows[0].stage == "data"
    assert sum(numbers(row.ms) for row in rows[:-1]) == pytest.approx(numbers(rows[-1].ms), abs=0.3)
    assert sum(row.share or 0 for row in rows[:-1]) == pytest.approx(1.0)


def test_one_step_is_the_median_one_with_the_device_beside_it(story: Path) -> None:
    told, found = asked(story), known(story)
    host, device = told.step.lanes
    walls = sorted((found.facts.steps.select(found.facts.steady.mask).wall / 1e6).tolist())
    assert host.spans[-1].t1 == pytest.approx(walls[(len(walls) - 1) // 2]) == told.step.end
    assert [span.stage for span in host.spans] == ["data", "h2d", "forward", "backward", "optimizer", "other"]
    assert all(one.t1 == other.t0 for one, other in zip(host.spans, host.spans[1:], strict=False))
    assert device.spans[0].stage == "" and device.spans[0].t1 == pytest.approx(5.3, rel=0.03)  # the lag
    assert all(one.t1 <= other.t0 + 1e-9 for one, other in zip(device.spans, device.spans[1:], strict=False))
    kernels = sum(span.t1 - span.t0 for span in device.spans if span.stage)
    assert kernels == pytest.approx(2.6 + 5.1 + 9.9 + 1.2, rel=0.03)
    t0, t1, text = told.step.idle or (0, 0, "")
    assert (t0, t1) == (device.spans[0].t1, host.spans[0].t1) and "exposed" in text


def test_a_finding_is_at_the_median_step(story: Path) -> None:
    told, found = asked(story), known(story)
    place = told.findings[0].place
    assert place.range_ns is not None and place.name == told.findings[0].rule
    assert place.device == (found.facts.device.id if found.facts.device else None)
    assert (place.range_ns[1] - place.range_ns[0]) / 1e6 == pytest.approx(told.step.end)


def test_a_run_without_a_gpu_has_no_device_lane(tmp_path: Path) -> None:
    told = asked(without_gpu(tmp_path / "r.stepscope").finish(30.0))
    assert [lane.name for lane in told.step.lanes] == ["Loop thread"] and told.step.idle is None
    assert told.word == "input_bound" and not told.has_trace and "holds none" in told.what_if_lacks


def test_a_run_without_steps_says_so(tmp_path: Path) -> None:
    told = asked(make_run(tmp_path / "r.stepscope", steps=0))
    assert told.word == "unknown" and told.reason and not told.parts and not told.step.lanes
    causes = len(known(tmp_path / "r.stepscope").lacks)
    assert [line.text for line in told.lacks] == [f"{causes} causes"]  # all lack the same


def test_a_growing_run_is_diagnosed_by_what_it_does_now(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", state="recording", data_cpu=4.0)
    told = asked(path)
    assert told.recording and told.word == "input_bound"
    assert not told.findings[0].testable and "after this recording" in told.findings[0].why_not


def test_before_there_is_a_verdict_it_says_what_live_says(tmp_path: Path) -> None:
    for name, planned in (("waiting", {"steps": 0}), ("warming", {"steps": 3})):
        path = make_run(tmp_path / f"{name}.stepscope", state="recording",
                        meta={"recorder_pid": os.getpid()}, **planned)
        told = asked(path)
        with Run.open(path) as run:
            live = live_query(run, Live())
        assert told.word == live.word == name and told.title == live.title and told.recording
        assert told.headline == "".join(text for text, _ in live.sentence) and not told.findings
    still = make_run(
        tmp_path / "still.stepscope", state="recording", meta={"recorder_pid": os.getpid()},
        events=lambda writer, start: writer.event(start, "no_step", "warning", "No step for 30 s, in a call"))
    assert asked(still).title == "Standing still"
    watched = make_run(tmp_path / "m.stepscope", steps=0, meta={"kind": "monitor"})
    assert asked(watched).word == "watching"


def test_only_what_verify_can_test_has_a_button(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    meta = {"cwd": str(tmp_path), "command": [sys.executable, "train.py"]}
    path = make_run(tmp_path / "r.stepscope", meta=meta, data_cpu=4.0)
    told = asked(path)
    with Run.open(path) as run:
        plan = make_plan(run, diagnose(run), told.findings[0].key)
    assert told.findings[0].testable and plan.finding is not None
    assert plan.finding.rule == told.findings[0].rule and "train.py" in told.program
    assert all(f.why_not for f in told.findings if not f.testable)
    bare = asked(make_run(tmp_path / "bare.stepscope", data_cpu=4.0, meta={"command": []}))
    assert not bare.findings[0].testable and "command" in bare.findings[0].why_not and not bare.repeatable


def test_findings_of_one_rule_are_told_apart_by_number(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Finding("stalls", "One", "info")
    found = replace(known(story), findings=(one, replace(one, title="Other"), Finding("shapes", "x", "info")))
    monkeypatch.setattr("app.diagnose.query.diagnose", lambda run: found)
    assert [f.key for f in asked(story).findings] == ["1", "2", "shapes"]


def test_stored_results_are_shown_at_once(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", data_cpu=4.0)
    remedy = known(path).findings[0].remedy
    assert remedy is not None
    append_result(path, "experiment", RESULT | {"remedy": remedy.to_json(), "score": "miss"})
    append_result(path, "experiment", RESULT | {"remedy": remedy.to_json()})
    append_result(path, "experiment", RESULT | {
        "remedy": {"setting": "threads", "from": 2, "to": 1},
        "ratio": {"median": 9.0, "low": 8.0, "high": 9.5}})
    append_result(path, "ceilings", CEILINGS)
    told = asked(path)
    shown = told.findings[0].ratios
    assert shown.measured == (1.79, 1.84, 1.9) and shown.badge == ("Hit", "ok") and shown.tone == "ok"
    assert shown.predicted == (1.7, 1.85, 2.0)  # that was tested, whatever is predicted now
    assert shown.pairs == (1.79, 1.81, 1.84, 1.86, 1.9)
    assert shown.rates == "1\u00a0224 \u2192 2\u00a0254\u00a0samples/s"
    assert shown.measured_text == "1.84\u00a0\u00d7\u00a0[1.79,\u00a01.90]"
    found = told.ceilings
    assert found is not None and [row.ms for row in found.rows] == [52.3, 36.2, 16.4]
    assert found.rows[1].title == "loader, 0 workers" and found.rows[1].stage == "data"
    assert (found.run_ms, found.verified_ms) == (52.3, 28.4)


@pytest.mark.parametrize("damage", [
    {"ratio": {"median": "x"}}, {"pairs": 7}, {"prediction": {"low": None}}, {"throughput": 3}])
def test_a_damaged_result_is_told_and_does_no_harm(damage: dict[str, Any]) -> None:
    finding = Finding("input_bound", "x", "error", remedy=Remedy("num_workers", 0, 8),
                      prediction=Prediction("no_input_wait", 1.8, 1.7, 2.0))
    shown = ratios.query(finding, RESULT | damage, 52.3, None)
    assert shown.measured is None and "cannot be read" in shown.outcome and shown.predicted == (1.7, 1.8, 2.0)


@pytest.mark.parametrize(("changes", "badge", "tone"), [
    ({"score": "miss"}, ("Miss", "err"), "ok"),
    ({"score": "vague"}, ("Vague", "warn"), "ok"),
    ({"score": "not scored", "prediction": None}, ("Faster", "ok"), "ok"),
    ({"score": "not scored", "outcome": "regression"}, ("Slower", "err"), "err"),
    ({"score": "not scored", "outcome": "no difference shown"}, ("No difference", "plain"), "t2"),
    ({"outcome": FAILS, "ratio": None, "reason": "it was killed"}, ("Fails", "err"), "err")])
def test_every_outcome_has_a_badge(
    changes: dict[str, Any], badge: tuple[str, str], tone: str
) -> None:
    shown = ratios.query(Finding("r", "x", "error"), RESULT | changes, 52.3, None)
    assert (shown.badge, shown.tone) == (badge, tone)


def test_damaged_ceilings_give_way_to_older_ones(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope")
    append_result(path, "ceilings", CEILINGS)
    append_result(path, "ceilings", CEILINGS | {"stages": [{"name": "real"}]})
    found = asked(path).ceilings
    assert found is not None and len(found.rows) == 3


@pytest.mark.parametrize("name", ["h100_bert_small", "mi250_toy_train"])
def test_an_imported_trace_shows_its_partition_and_replay(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = TRACES / f"{name}.json.gz"
    if not trace.exists():
        pytest.skip("the reference traces are not here")
    path = tmp_path / "r.stepscope"
    assert main(["import", str(trace), "-o", str(path)]) == 0
    with monkeypatch.context() as patch:
        patch.setattr("profiler.rules.trace.stored.engine", lambda: "another version")
        before = asked(path)
    assert before.unanalysed and not before.findings and "not analysed" in before.what_if_lacks
    told, found = asked(path), known(path)
    assert found.trace is not None and not told.unanalysed
    part = found.trace["partition_ms"]
    assert told.parts_title == "Partition of the step"
    assert len(told.parts) == sum(ms > 0 for ms in part.values()) + 1
    lane = told.step.lanes[-1]
    assert lane.name == "Partition" and lane.spans[-1].t1 == pytest.approx(sum(part.values()))
    assert len(told.what_if) == len(found.trace["what_if"] or ()) or told.what_if_lacks
    assert not any(f.testable for f in told.findings) and told.word == found.verdict


def test_every_class_has_a_colour() -> None:
    assert set(step.CLASS_STAGES.values()) <= set(DARK.stages)


def test_the_line_of_code_is_shown_from_the_file(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("".join(f"line {n}\n" for n in range(1, 9)))
    (tmp_path / "secret.txt").write_text("not code\n")
    with Run.open(make_run(tmp_path / "r.stepscope", meta={"cwd": str(tmp_path)})) as run:
        shown = code.query("train.py:5", run)
        assert shown.path == script and shown.line == 5
        assert shown.lines == ((3, "line 3"), (4, "line 4"), (5, "line 5"), (6, "line 6"))
        assert shown.note == "changed since the run"
        assert code.query("train.py:99", run).lines == ()
        for site in ("gone.py:3", "secret.txt:1", "train.py", ":4", "train.py:x", "/dev/zero:1", "\0.py:1"):
            found = code.query(site, run)
            assert found.path is None and not found.lines and found.site == site


def test_the_editor_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a b.py"
    for name in ("STEPSCOPE_EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    assert code.editor_command(path, 7) == []
    monkeypatch.setenv("VISUAL", "vim")
    assert code.editor_command(path, 7) == []  # it would need a terminal
    monkeypatch.setenv("VISUAL", "code")
    assert code.editor_command(path, 7) == ["code", "-g", f"{path}:7"]
    monkeypatch.setenv("STEPSCOPE_EDITOR", "mine --at {line} {file}")
    assert code.editor_command(path, 7) == ["mine", "--at", "7", str(path)]
    assert code.editor_command(path, 7, "other 'x y'") == ["other", "x y", str(path)]
    assert code.editor_command(path, 7, "'open") == []


def test_a_step_of_no_length_is_no_lane(story: Path) -> None:
    found = known(story)
    with Run.open(story) as run:
        told = found.to_json() | {"partition_ms": {"compute": 0.0}}
        assert [lane.name for lane in step.query(run, found, told).lanes] == ["Loop thread", "Device"]
