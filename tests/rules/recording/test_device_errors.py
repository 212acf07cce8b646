"""Errors that the GPU reported are a finding; those that its memory corrected are none."""

import pytest

from profiler.rules.recording import device_errors
from tests.rules.recording.gpu_runs import finding, gpu_facts, memory


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
