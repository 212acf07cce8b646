"""Stalls: what they have in common, and when the verdict says so."""

import pytest

from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.runs import CPU_STAGES_MS, MS, START_NS, make_run

USUAL_MS = sum(CPU_STAGES_MS.values())


def told(path, stall_ms, at, stage="other", pause=None, steps=200, **planned):
    """The diagnosis of a run whose steps `at(k)` take so much longer in a stage; `pause`: seen in each."""
    longer = {k for k in range(steps) if at(k)}

    def events(writer, start):
        t = START_NS + 500 * MS
        for k in range(steps):
            if k in longer and pause:
                writer.event(t + 10 * MS, "pause", "info", "a pause", process=1,
                             data={"ms": stall_ms, "site": "train.py:9", **pause})
            t += round((USUAL_MS + (stall_ms if k in longer else 0)) * MS)

    stages = {**CPU_STAGES_MS, stage: lambda k: CPU_STAGES_MS[stage] + (stall_ms if k in longer else 0)}
    with Run.open(make_run(path, steps=steps, stages=stages, events=events, **planned)) as run:
        return diagnose(run)


def stalls(diagnosis):
    return [f for f in diagnosis.findings if f.rule == "stalls"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


EVERY_TENTH = lambda k: k % 10 == 9  # noqa: E731
AT_RANDOM = lambda k: k in (70, 75, 101, 160, 161)  # noqa: E731


@pytest.mark.parametrize(("pause", "title", "advice"), [
    ({"cause": "gc", "generation": 2}, "Every 10th step stalls: garbage collection", "gc.freeze()"),
    ({"cause": "save"}, "Every 10th step stalls: torch.save", "less often"),
    ({"cause": "stack", "lines": ["train.py:9 log"]}, "Every 10th step stalls: train.py:9", "Look at"),
    (None, "Every 10th step stalls in other", "Look at")])
def test_stalls_that_recur_name_their_cause_and_make_the_verdict(path, pause, title, advice):
    found = told(path, 400.0, EVERY_TENTH, pause=pause)
    (finding,) = stalls(found)
    assert (finding.title, finding.severity) == (title, "error") and advice in finding.advice
    assert finding.site == ("train.py:9" if pause else None)
    assert finding.cost_ms == pytest.approx(40, rel=0.1)
    assert found.verdict == "host_bound"
    assert "every 10th step stalls" in found.decision.reason
    (host,) = [f for f in found.findings if f.rule == "host_bound"]
    assert host.counter_evidence[0].value == pytest.approx(40, rel=0.1)


def test_rare_stalls_make_the_verdict_where_they_cost_more_than_five_in_a_hundred(path):
    """On a CPU less than 15 % outside the stages may be the loss: but not where it comes in stalls."""
    found = told(path, 0.07 * 50 * USUAL_MS, lambda k: k % 50 == 49)
    (finding,) = stalls(found)
    assert found.verdict == "host_bound" and finding.severity == "warning"


def test_collections_inside_a_stage_are_host_work(path):
    found = told(path, 400.0, EVERY_TENTH, stage="forward", pause={"cause": "gc", "generation": 2})
    assert found.verdict == "host_bound"
    assert found.facts.summary.stages["forward"] == pytest.approx((20 + 40) * MS, rel=0.1)
    assert told(path.with_name("b.stepscope"), 400.0, EVERY_TENTH, stage="forward").verdict == "compute_bound"


def test_stalls_without_rhythm_or_cause_are_a_note_that_costs_nothing(path):
    found = told(path, 400.0, AT_RANDOM)
    (finding,) = stalls(found)
    assert finding.title == "5 steps stalled in other" and finding.severity == "info"
    assert finding.cost_ms == 0 and "no rhythm" in finding.counter_evidence[0].text
    assert found.verdict == "compute_bound"


def test_stalls_without_rhythm_that_have_one_cause_are_more_than_a_note(path):
    found = told(path, 400.0, AT_RANDOM, pause={"cause": "gc", "generation": 2})
    (finding,) = stalls(found)
    assert finding.title == "5 steps stalled: garbage collection" and finding.severity == "error"


def test_saves_are_named_where_step_times_are_too_uneven_for_a_rhythm(path):
    found = told(path, 400.0, lambda k: k * k % 11 == 4, pause={"cause": "save"})
    (host,) = [f for f in found.findings if f.rule == "host_bound"]
    assert host.title == "The loop works outside the stages: torch.save" and host.site == "train.py:9"
    assert "less often" in host.advice
    seen = {e.text: e.value for e in host.evidence}
    (text,) = [text for text in seen if text.startswith("Of it torch.save, in ")]
    assert seen[text] == pytest.approx(400 * 2 / 11, rel=0.1)
    plain = told(path.with_name("b.stepscope"), 400.0, lambda k: k * k % 11 == 4)
    (host,) = [f for f in plain.findings if f.rule == "host_bound"]
    assert host.title == "The loop works outside the stages" and host.site is None


def test_one_long_step_is_a_note_whatever_was_seen_in_it(path):
    """Once in a run says nothing of how often: here it takes 8 % of the time, of a run of 45 steps."""
    seen = {"cause": "stack", "lines": ["train.py:9 main"]}
    (finding,) = stalls(told(path, 400.0, lambda k: k == 30, stage="data", pause=seen, steps=45))
    assert finding.title == "1 step stalled: train.py:9" and finding.site == "train.py:9"
    assert finding.severity == "info" and finding.cost_ms == 0


def test_a_line_that_computes_is_no_cause(path):
    """In a step that is long by chance the line of the longest stage is seen most."""
    seen = {"cause": "stack", "lines": ["train.py:9 main"]}
    found = told(path, 400.0, AT_RANDOM, stage="backward", pause=seen)
    (finding,) = stalls(found)
    assert finding.severity == "info" and finding.title == "5 steps stalled in backward"


def test_bursts_of_workers_are_no_stalls(path):
    found = told(path, 400.0, lambda k: k % 8 == 7, stage="data", workers=8, host={"target.cpu": 1.0})
    assert found.verdict == "input_bound"
    assert not any("stall" in f.title for f in stalls(found))
