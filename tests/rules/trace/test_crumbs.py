"""Short operators on a CPU: what they cost, and what of it is the profiler's own."""

import json

import numpy as np
import pytest

from profiler.analysis.trace.code.crumbs import crumbs
from profiler.cli._traces import analysed
from profiler.rules.base import Finding
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.launch_bound import check
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.rules.trace.loops import US
from tests.runs import CPU_STAGES_MS, MS, make_run
from tests.traces import Timeline

SHORT, LONG = 200, 2  # operators in a step: of 4 us, each 2 us after the one before, and of 500 us
STEP_NS = (SHORT * 6 + LONG * 500) * US


def loop(short=SHORT, steps=6):
    line, at = Timeline(), 0
    for k in range(steps):
        begin = at
        for _ in range(LONG):
            line.op("aten::mm", at, at + 500 * US)
            at += 500 * US
        for _ in range(short):
            line.op("aten::mul_", at, at + 4 * US).op("aten::empty", at + US, at + 2 * US)
            at += 6 * US
        line.op("aten::sum", at - 2 * US, at - 2 * US, thread=2)
        line.step(k, begin, at)
    return line


def facts(short=SHORT, cpu_ms=None):
    cpu = None if cpu_ms is None else (cpu_ms[0] * MS, cpu_ms[1] * MS)
    return TraceFacts(loop(short).trace(), what_if=False, cpu_ns=cpu)


def test_short_operators_count_with_what_calls_the_next_one():
    told = facts()
    found = crumbs(told.owners, told.steps.thread, told.in_step)
    steps = len(told.windows)
    assert (found.count, found.of) == (steps * SHORT, steps * (SHORT + LONG))
    assert found.median_ns == 4 * US and found.time_ns == steps * SHORT * 4 * US
    assert found.span_ns == pytest.approx(steps * SHORT * 6 * US, rel=0.01)
    assert (found.events, found.every) == (steps * SHORT * 2, steps * (SHORT * 2 + LONG))


def test_a_trace_without_operators_has_none():
    told = TraceFacts(Timeline().annotation("forward", 0, 10).op("aten::mm", 20, 30, thread=2).trace())
    found = crumbs(told.owners, -5, np.ones(len(told.trace.host), bool))
    assert found.count == found.of == found.span_ns == 0 and not len(found.rows)


def test_measured_without_the_profiler_too_they_are_a_finding():
    (finding,) = check(facts(cpu_ms=(2.2, 2.0))).findings
    assert finding.title == "200 operators of a few microseconds" and finding.severity == "error"
    assert finding.cost_ms == pytest.approx(1.2 - 0.2, rel=0.02) and finding.remedy is None and finding.advice
    told = {e.text: e.value for e in finding.evidence}
    assert told["Operators of less than 20 us, per step"] == 200
    assert told["aten::mul_ among them, per step"] == 200
    assert Finding.from_json(json.loads(json.dumps(finding.to_json()))) == finding


def test_a_thread_that_does_much_beside_operators_is_not_full_of_them():
    assert "short operators take" in check(facts(cpu_ms=(20.0, 19.9))).ruled_out


@pytest.mark.parametrize(("cpu_ms", "cost", "severity"), [
    ((2.2, 1.3), 0.3, "error"), ((2.2, 1.05), 0.05, "warning"), ((2.8, 1.2), 0.0, "warning")])
def test_what_the_profiler_costs_is_not_theirs(cpu_ms, cost, severity):
    """In a window that is slow as a whole too much is taken off: that hides no finding, only its cost."""
    (finding,) = check(facts(cpu_ms=cpu_ms)).findings
    assert finding.cost_ms == pytest.approx(cost, abs=0.02) and finding.severity == severity


@pytest.mark.parametrize(("short", "found"), [(300, True), (100, False)])
def test_a_bare_trace_takes_more_of_them(short, found):
    outcome = check(facts(short))
    assert bool(outcome.findings) == found
    if found:
        assert "profiler's own cost" in outcome.findings[0].counter_evidence[0].text


@pytest.mark.parametrize("short", [300, 10])
def test_a_cpu_recording_tells_of_them_beside_its_stages(tmp_path, short):
    def events(writer, start):
        writer.attach(start, "kineto", "0.trace.json", loop(short).bytes(), process=1,
                      properties={"steps": [1, 2], "valid": True, "note": ""})

    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 0.1}, events=events)
    with Run.open(path) as run:
        bare = diagnose(run)
        assert "trace" in dict(bare.lacks)["Launch overhead"]
    analysed(path)
    with Run.open(path) as run:
        told = diagnose(run)
    assert told.verdict == bare.verdict == "compute_bound" and told.headline == bare.headline
    assert "Launch overhead" not in dict(told.lacks)
    assert ("launch_bound" in {f.rule for f in told.findings}) == (short == 300)
    assert ("Launch overhead" in dict(told.ruled_out)) == (short == 10)
    assert {f.rule for f in told.findings} - {"launch_bound"} == {f.rule for f in bare.findings}
