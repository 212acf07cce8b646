"""Rules on traces: the protocol, what each is about, and the line of the user's code."""

import json

import numpy as np
import pytest

from profiler.rules.base import Finding, Outcome, rules
from profiler.rules.trace.evidence import site
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.memory_tables import memory
from tests.reference import needs_reference, traces, truth
from tests.rules.trace.loops import US, loop
from tests.traces import Timeline

RULES = {rule.name: rule for rule in rules("profiler.rules.trace")}
EMPTY = Timeline().op("aten::relu", 0, 10).call("cudaLaunchKernel", 2, 4, 1)  # a launch without its kernel


def facts(line, what_if=True):
    return TraceFacts(line.trace(), what_if)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_it_lacks_or_answers_in_one_way(name):
    rule = RULES[name]
    assert rule.title[0].isupper() and rule.check.__doc__
    nothing = rule.check(facts(EMPTY))
    assert isinstance(nothing, Outcome) and nothing.lacks and not nothing.findings
    for planned in ({}, {"wait_us": 400}, {"kernel_us": 47}):
        outcome = rule.check(facts(loop(**planned)))
        assert bool(outcome.findings) + bool(outcome.ruled_out) + bool(outcome.lacks) == 1
        for finding in outcome.findings:
            assert finding.rule == name and finding.evidence and (finding.remedy or finding.advice)
            assert finding.severity in ("info", "warning", "error")
            assert Finding.from_json(json.loads(json.dumps(finding.to_json()))) == finding


@needs_reference
@pytest.mark.parametrize("kind", ["input_bound", "transfer_bound", "sync_bound", "launch_bound", "host_bound",
                                  "allocator_bound", "communication_bound", "compute_bound"])
def test_each_cause_of_the_labelled_traces_is_a_finding(kind):
    files = [file for file, row in truth().items() if row["kind"] == kind]
    assert len(files) >= 2
    for file in files:
        [finding] = RULES[kind].check(TraceFacts(traces(file)[0])).findings
        assert finding.cost_ms > 0 and (kind == "compute_bound" or finding.prediction.at_most)


def frames(line, t1):
    return (line.python("train.py(12): <module>", 0, t1).python("train.py(40): step", 1, t1)
            .python("/usr/lib/python3.11/site-packages/torch/utils/data.py(9): __next__", 2, t1))


def test_the_line_is_of_the_innermost_frame_that_is_no_librarys():
    line = frames(Timeline(), 100 * US).call("cudaStreamSynchronize", 10 * US, 20 * US, 1)
    found = facts(line)
    rows = np.flatnonzero(found.joined.is_call)
    assert site(found, rows) == "train.py:40"


def test_the_line_where_most_time_is_spent():
    line = Timeline().python("a.py(1): f", 0, 50 * US).python("b.py(2): g", 60 * US, 160 * US)
    line.call("cudaStreamSynchronize", 10 * US, 20 * US, 1).call("cudaStreamSynchronize", 70 * US, 90 * US, 2)
    found = facts(line)
    assert site(found, np.flatnonzero(found.joined.is_call)) == "b.py:2"


def test_the_line_from_an_operators_call_stack():
    line = Timeline().op("aten::item", 0, 50 * US, stack="torch/tensor.py(1): item;train.py(7): <module>")
    line.call("cudaStreamSynchronize", 10 * US, 20 * US, 1)
    found = facts(line)
    assert site(found, np.flatnonzero(found.joined.is_call)) == "train.py:7"


def test_without_stacks_there_is_no_line():
    found = facts(Timeline().call("cudaStreamSynchronize", 10, 20, 1))
    assert site(found, np.flatnonzero(found.joined.is_call)) is None


@pytest.mark.parametrize(("grows", "found"), [(4 << 20, True), (0, False)])
def test_memory_that_grows(grows, found):
    line = loop(5)
    for k in range(10):
        line.memory(k * 220 * US, 1 << 20, allocated=(1 << 30) + k * grows, reserved=2 << 30)
    outcome = RULES["memory"].check(facts(line))
    assert bool(outcome.findings) is found and bool(outcome.ruled_out) is not found


@pytest.mark.parametrize(("major", "remedy", "ruled"), [
    (8, True, False), (7, False, False), (6, False, True)])
def test_tensor_cores_are_advised_where_the_device_has_them(major, remedy, ruled):
    line = loop(kernel_us=47, name="mm")
    line.top["deviceProperties"][0]["computeMajor"] = major
    outcome = RULES["tensor_cores"].check(facts(line))
    assert bool(outcome.ruled_out) is ruled
    assert ruled or (outcome.findings[0].remedy is not None) is remedy


@needs_reference
@pytest.mark.parametrize(("file", "full"), [("trace_023.json.gz", True), ("trace_004.json.gz", False)])
def test_memory_that_ran_out_is_evidence(file, full):
    found = TraceFacts(traces(file)[0], what_if=False)
    [finding] = RULES["allocator_bound"].check(found).findings
    [row] = [e for e in finding.evidence if e.text.startswith("Memory ran out")] if full else [None]
    assert (row is None) is not full and (not full or row.value == 13)
    assert ("full" in finding.advice) is full
    told = memory(found)
    assert told["retries"] == (65 if full else 0) and told["retries_in_steps"] == (52 if full else 0)
