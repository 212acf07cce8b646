"""What is doubtful of the traces themselves is said, and nothing is claimed that they cannot show."""

import dataclasses

from profiler.rules.trace.diagnosis import diagnose
from tests.rules.trace.loops import loop
from tests.traces import Timeline


def test_processes_that_are_not_of_one_job_are_told():
    def notes(*changes):
        traces = [dataclasses.replace(loop(rank=k).trace(), **change) for k, change in enumerate(changes)]
        return " ".join(diagnose(traces, "x", what_if=False).to_json()["notes"])

    told = ("say that they are rank", "are of jobs of", "ran at the same time")
    assert not [text for text in told if text in notes({}, {})]
    assert f"2 of the processes {told[0]} 0" in notes({}, {"rank": 0})
    assert f"{told[1]} 2 and 8 ranks" in notes({}, {"world_size": 8})
    late = loop().trace().base_ns + 11_560_000_000
    assert told[2] in notes({}, {"base_ns": late})
    assert told[2] not in notes({}, {"base_ns": late, "absolute": False})


def test_a_trace_of_another_tool_gets_no_verdict():
    line = Timeline()
    for k in range(50):
        line.event("devtools.timeline", "RunTask", k * 1000, k * 1000 + 500, 1, 1, {})
    told = diagnose([line.trace()], "x").to_json()
    assert told["verdict"] == "unknown" and told["partition_ms"] is None and "no operators" in told["reason"]
    assert diagnose([line.op("aten::mm", 0, 40_000).trace()], "x").to_json()["partition_ms"]


def test_a_device_alone_does_not_say_what_it_waited_for():
    line = Timeline()
    for k in range(5):
        line.kernel("k", k * 1000, k * 1000 + 500, k + 1)
    said = "what the device waited for"
    assert said in " ".join(diagnose([line.trace()], "x").to_json()["notes"])
    line.call("cudaLaunchKernel", 0, 10, 1)
    assert said not in " ".join(diagnose([line.trace()], "x").to_json()["notes"])
