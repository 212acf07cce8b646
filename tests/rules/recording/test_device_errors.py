"""Errors that the GPU reported are a finding; those that its memory corrected are none."""

from contextlib import closing

import pytest

from profiler.analysis.facts import gather
from profiler.rules.recording import device_errors, other_processes, pcie_slot, throttling
from profiler.rules.words import evidence
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.rules.recording.gpu_runs import finding, gpu_facts, memory
from tests.runs import START_NS, run_meta


def of(path, *events):
    return gpu_facts(path, torch=memory(), gpu={"gpu.util": 0.9}, health=events)


def xid(number):
    return "xid", "error", f"GPU 0 (H200): XID {number}, something", {"xid": number}


@pytest.mark.parametrize(("events", "severity", "title", "advice"), [
    ([xid(48), xid(48)], "error", "The GPU reported errors: XID 48", "dmesg"),
    ([xid(31)], "error", "The GPU reported errors: XID 31", "compute-sanitizer"),
    ([xid(31), xid(79)], "error", "The GPU reported errors: XID 79", "dmesg"),
    ([("rows", "warning", "GPU 0 (H200): rows of memory that were replaced: 1", {})], "warning", "rows",
     "dmesg"),
    ([("nvlink", "warning", "GPU 0 (H200): NVLinks that went down: 2", {}), ("device_lost", "error",
      "GPU 0 (H200) does not answer: it fell off the bus", {})], "error", "does not answer", "dmesg"),
])
def test_what_was_reported_is_told_with_advice_that_fits(tmp_path, events, severity, title, advice):
    found = finding(device_errors, of(tmp_path / "a.stepscope", *events))
    assert found.severity == severity and title in found.title and advice in found.advice
    assert sum(e.value for e in found.evidence) == len(events)


def test_corrected_errors_and_those_of_another_gpu_are_no_finding(tmp_path):
    corrected = ("ecc", "info", "GPU 0 (H200): corrected memory errors: 7", {})
    outcome = device_errors.check(of(tmp_path / "a.stepscope", corrected, (*xid(79), "GPU-other")))
    assert not outcome.findings and "corrected" in outcome.ruled_out
    assert device_errors.check(of(tmp_path / "b.stepscope")).ruled_out == "none was reported"


def watched(path, *events):
    """A command whose loop was never seen, with two GPUs."""
    with closing(RunWriter.create(path, run_meta(gpu=True))) as writer:
        gpus = [writer.add_device(f"GPU-{k}", k, "H200") for k in (0, 1)]
        for gpu, (kind, severity, text, data) in events:
            writer.event(START_NS, kind, severity, text, device=gpus[gpu], data=data)
        writer.finish("finished", START_NS + 10**9)
    with closing(Run.open(path)) as run:
        return gather(run, None)


def test_without_a_step_errors_of_every_gpu_are_told_by_name(tmp_path):
    """A GPU that falls off the bus before the first step is why there is none."""
    lost = "GPU 1 (H200) does not answer: it fell off the bus"
    found = finding(device_errors, watched(tmp_path / "a.stepscope", (0, xid(13)),
                                           (1, ("device_lost", "error", lost, {}))))
    assert lost in found.title and [e.text for e in found.evidence] == [xid(13)[2], lost]


@pytest.mark.parametrize("rule", [device_errors, other_processes, pcie_slot, throttling])
def test_a_loop_that_nobody_saw_is_not_said_to_run_on_the_cpu(tmp_path, rule):
    assert "no step was seen" in rule.check(watched(tmp_path / "a.stepscope")).lacks


@pytest.mark.parametrize(("value", "unit", "text"), [(1, "times", "1 time"), (2, "times", "2 times"),
                                                     (1, "samples/s", "1 samples/s"), (1, "", "1")])
def test_one_of_a_thing_is_told_in_the_singular(value, unit, text):
    found = evidence({"text": "XID 79", "value": value, "unit": unit, "source": "NVML"})[1]
    assert found.replace("\u00a0", " ") == text
