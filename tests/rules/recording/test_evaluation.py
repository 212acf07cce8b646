"""Evaluation between training steps."""

from profiler.model import STEP_EVALUATION
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.runs import CPU_STAGES_MS, make_run


def told(path, evaluates, **planned):
    """The findings of the rule, and why it is ruled out or what it lacks."""
    planned = {"steps": 100, "stages": CPU_STAGES_MS, **planned}
    with Run.open(make_run(path, flags=lambda k: STEP_EVALUATION if evaluates(k) else 0, **planned)) as run:
        found = diagnose(run)
    return ([f for f in found.findings if f.rule == "evaluation"],
            dict(found.ruled_out).get("Evaluation"), dict(found.lacks).get("Evaluation"))


def test_a_fifth_of_the_time_in_five_phases(tmp_path):
    ((finding,), _, _) = told(tmp_path / "a.stepscope", lambda k: k % 20 >= 16)
    assert finding.title == "Evaluation takes 20 % of the time" and finding.severity == "info"
    evidence = {e.text: e.value for e in finding.evidence}
    assert round(evidence["Evaluation in 5 phases, mean"]) == 4 * 56
    assert evidence["Its steps"] == 20
    assert finding.cost_ms == evidence["For each training step"] == 20 * 56 / 80


def test_what_comes_before_training_is_none_of_it(tmp_path):
    assert told(tmp_path / "a.stepscope", lambda k: k < 40)[:2] == ([], "0.0 % of the time")


def test_inference_is_no_evaluation_of_a_training(tmp_path):
    assert told(tmp_path / "a.stepscope", lambda k: True)[2] == "no training step"
