"""The diagnosis of traces: on loops with one planned cost, on real traces, and on those with exact truth."""

import json
from functools import cache

import numpy as np
import pytest

from profiler.cli._common import plain
from profiler.rules.trace.diagnosis import diagnose
from tests.reference import needs_reference, reference_files, traces, truth
from tests.rules.trace.loops import US, loop, step_ms, told, without_device
from tests.traces import Timeline

DESIGN = {"schema", "source", "verdict", "also", "confidence", "reason", "device", "steps", "step_ms",
          "stages_ms", "ranks", "throughput", "partition_ms", "what_if", "replay_error", "findings", "notes"}
PARTITION = {"compute", "communication_exposed", "transfer_exposed", "queued", "input_wait", "allocator",
             "transfer_host", "sync", "host"}


def test_the_form_of_the_design():
    found = told(loop(wait_us=400))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found) >= DESIGN and set(found["partition_ms"]) >= PARTITION
    assert found["verdict"] == "input_bound" and found["source"] == "a.json"
    assert found["steps"]["count"] == 5 and found["steps"]["rule"] == "ProfilerStep"
    step = found["step_ms"]
    assert step["median"] == step_ms(400) and step["p5"] is None
    assert step["range"] == [step_ms(400)] * 2
    assert sum(found["partition_ms"].values()) == pytest.approx(step["usual"], abs=1e-9)
    assert found["partition_ms"]["input_wait"] == pytest.approx(0.4, abs=1e-3)
    assert found["device"]["name"] == "NVIDIA H100 80GB HBM3" and found["ranks"] is None
    gain = next(s for s in found["what_if"] if s["scenario"] == "no_input_wait")
    assert gain["low"] <= gain["speedup"] <= gain["high"] and gain["speedup"] > 1.3
    assert found["kernels"]["by_name"]["rows"][0]["count"] == 100
    assert any("range instead of percentiles" in note for note in found["notes"])


def test_ten_steps_have_percentiles():
    step = told(loop(11), what_if=False)["step_ms"]
    assert step["p5"] == step["p95"] == step_ms()
    assert told(loop(10), what_if=False)["step_ms"]["p5"] is None


@pytest.mark.parametrize(("planned", "word"), [
    ({"wait_us": 400}, "input_bound"), ({"kernel_us": 47}, "compute_bound"),
    ({"kernels": 68, "kernel_us": 1, "first_us": 60}, "launch_bound")])
def test_a_planned_cost_is_named_with_and_without_predictions(planned, word):
    assert told(loop(**planned))["verdict"] == word
    quick = told(loop(**planned), what_if=False)
    assert quick["verdict"] == word and quick["confidence"] == "low" and quick["what_if"] is None
    assert quick["replay_error"] is None and quick["replay"] is None


def test_a_finding_is_whole():
    found = told(loop(wait_us=400))["findings"][0]
    assert found["rule"] == "input_bound" and found["severity"] == "error"
    assert found["remedy"] == {"setting": "num_workers", "from": 0, "to": 2}
    assert found["prediction"]["scenario"] == "no_input_wait" and found["prediction"]["at_most"]
    assert found["evidence"][0] == {"text": "Idle while the loop waits for its batch, mean per step",
                                    "value": pytest.approx(0.4, abs=1e-3), "unit": "ms", "source": "trace"}


def test_what_was_not_asked_for_is_said():
    quick, full = told(loop(wait_us=400), what_if=False), told(loop(wait_us=400))
    lacks = {(item["rule"], item["text"]) for item in quick["lacks"]}
    wanted = {(title, "no prediction was asked for") for title in ("What-if replay", "Critical path")}
    assert lacks >= wanted and quick["critical_path"] is None
    assert "No replay was asked for: there are neither predictions nor a critical path" in quick["notes"]
    assert not {item["rule"] for item in full["lacks"]} & {"What-if replay", "Critical path"}
    assert full["critical_path"] and not any("asked for" in note for note in full["notes"])


@needs_reference
def test_what_one_setting_cures_comes_before_a_larger_ideal():
    found = real("v100_resnet50_workers0.json.gz")
    assert found["verdict"] == "launch_bound"
    rules = [finding["rule"] for finding in found["findings"]]
    assert rules[:2] == ["input_bound", "launch_bound"]
    gains = [finding["prediction"]["speedup"] for finding in found["findings"][:2]]
    assert gains[0] < gains[1]


def test_workers_cannot_be_advised_where_their_number_is_not_known():
    found = told(loop(wait_us=400, workers=True))["findings"][0]
    assert found["rule"] == "input_bound" and found["remedy"] is None and found["advice"]


def test_no_claim_about_the_device_without_its_kernels():
    found = told(loop(wait_us=400, kernels=3, kernel_us=100, missing=3))
    assert found["verdict"] == "unknown" and found["partition_ms"] is None and not found["findings"]
    assert found["reason"].startswith("GPU activity not captured")
    some = told(loop(wait_us=400, kernels=3, kernel_us=100, missing=1))
    assert some["verdict"] == "unknown" and "GPU data incomplete" in some["reason"]
    assert some["operators"]["by_name"]["rows"][0]["calls"] == 15
    healthy = told(loop(wait_us=800, kernels=3, kernel_us=100))
    assert healthy["verdict"] == "input_bound"


def test_several_ranks_and_what_holds_each_up():
    found = told(loop(wait_us=400, rank=0), loop(kernel_us=47, rank=1))
    assert [r["rank"] for r in found["ranks"]] == [0, 1]
    assert found["rank"] == 0 and found["verdict"] == "input_bound"
    assert found["ranks"][1]["verdict"] == "compute_bound" and "compute_bound" not in found["also"]
    assert found["notes"][0] == "Of 2 processes rank 0 is shown, whose own bottleneck costs most"
    assert found["waiting"] is not None


def test_a_trace_without_an_accelerator_is_not_called_a_gpu():
    found = told(without_device(loop(wait_us=400)))
    assert found["device"] == {"kind": "cpu", "name": "CPU"} and found["verdict"] == "input_bound"
    assert "GPU" not in json.dumps({k: v for k, v in found.items() if k != "lacks"})
    assert found["partition_ms"]["input_wait"] == pytest.approx(0.4, abs=1e-3)


def test_on_the_cpu_ready_batches_are_predicted_and_decide():
    found = told(without_device(loop(wait_us=400)))
    [only] = found["what_if"]
    # the fetch keeps its own overhead, at most 150 us
    assert only["scenario"] == "no_input_wait"
    assert only["speedup"] == pytest.approx(found["step_ms"]["median"] / (step_ms() + 0.152), rel=0.01)
    assert found["replay_error"] == 0 and found["verdict"] == "input_bound" and found["confidence"] == "high"
    assert found["critical_path"] is None


@pytest.mark.parametrize(("share", "word"), [(0.90, "compute_bound"), (0.80, "unknown")])
def test_on_the_cpu_the_rest_is_compute_or_unknown(share, word):
    line = Timeline()
    for k in range(6):
        line.step(k, k * 1000 * US, (k + 1) * 1000 * US)
        line.op("aten::mm", k * 1000 * US, int((k + share) * 1000 * US))
    found = told(line)
    assert found["verdict"] == word and found["also"] == (["host_bound"] if share < 0.85 else [])
    assert found["confidence"] == ("high" if share > 0.85 else "low")
    text = json.dumps({k: v for k, v in found.items() if k != "lacks"})
    assert "GPU" not in text and "accelerator" not in text


def test_on_the_cpu_too_what_was_not_asked_for_is_said():
    quick = told(without_device(loop(wait_us=400)), what_if=False)
    assert {"rule": "What-if replay", "text": "no prediction was asked for"} in quick["lacks"]
    assert "Critical path" not in {item["rule"] for item in quick["lacks"]}
    assert "No replay was asked for: there are no predictions" in quick["notes"]
    assert quick["verdict"] == "input_bound" and quick["confidence"] == "low"


# What the README beside the real traces names: words that verdict and also must hold, and must not.
NAMED = {
    "v100_resnet50_workers0": ({"input_bound", "launch_bound"}, set()),
    "v100_resnet50_workers4": ({"launch_bound"}, {"input_bound"}),
    "rtx2080ti_resnet": ({"input_bound"}, set()), "h100_owlv2": ({"input_bound"}, set()),
    "h100_bert_small": ({"launch_bound"}, set()), "h100_timesformer": ({"host_bound"}, set()),
    "v100_float_epoch_us": ({"compute_bound"}, set()),
    "v100_dlrm_8ranks": ({"communication_bound", "launch_bound"}, set()),
    "v100_ddp_rank1of2": ({"launch_bound"}, set()), "a100_nccl_rank0of2": ({"launch_bound"}, set()),
}


@cache
def real(file):
    return plain(diagnose(traces(file), file).to_json())


@needs_reference
@pytest.mark.parametrize("file", [path.name for path in reference_files()])
def test_real_traces(file):
    found = real(file)
    json.dumps(found, allow_nan=False)
    for rank in found["ranks"] or [found]:
        if rank["step_ms"] and rank["partition_ms"]:
            assert sum(rank["partition_ms"].values()) == pytest.approx(rank["step_ms"]["usual"], abs=1e-6)
    needed, wrong = NAMED.get(file.split(".")[0], (set(), set()))
    words = {found["verdict"], *found["also"]}
    assert words >= needed and not words & wrong


def share(file, *classes):
    found = real(file)
    return sum(100 * found["partition_ms"][name] for name in classes) / found["window_ms"]


@needs_reference
def test_percentages_of_real_traces():
    assert share("v100_resnet50_workers0.json.gz", "input_wait") == pytest.approx(33, abs=1)
    assert share("v100_resnet50_workers4.json.gz", "input_wait") < 1
    assert share("h100_owlv2.json.gz", "input_wait") == pytest.approx(51, abs=1)
    assert share("v100_ddp_rank1of2.json.gz", "communication_exposed") == pytest.approx(21, abs=1)
    assert share("v100_float_epoch_us.json.gz", "compute") == pytest.approx(98, abs=1)
    busy = "compute", "communication_exposed", "transfer_exposed"
    assert share("a100_nccl_rank0of2.json.gz", *busy) == pytest.approx(24, abs=1)
    assert 0.99 * 218 < real("h100_timesformer.json.gz")["partition_ms"]["host"] < 1.05 * 218


def over_its_own_span(file, rank, name):
    """Percentage of the time from the first to the last activity of the device, as other tools count."""
    device = traces(file)[rank].device
    span = (int(device.end.max()) - int(device.start.min())) / 1e6
    told = (real(file)["ranks"] or [real(file)])[rank]
    return 100 * told["partition_ms"][name] / span


@needs_reference
def test_where_other_tools_divide_by_the_span_of_the_device_and_we_by_the_step():
    assert over_its_own_span("h100_bert_small.json.gz", 0, "compute") == pytest.approx(8, abs=1)
    exposed = [over_its_own_span("v100_dlrm_8ranks.tar.gz", rank, "communication_exposed")
               for rank in range(8)]
    assert min(exposed) == pytest.approx(14, abs=1) and max(exposed) == pytest.approx(59, abs=1)


@needs_reference
def test_copies_of_a_real_trace():
    [pageable] = [row for row in real("rtx2080ti_resnet.json.gz")["copies"] if row["kind"] == "h2d_pageable"]
    assert pageable["rate"] == pytest.approx(3.7, abs=0.1)


@needs_reference
def test_withheld_where_records_of_stream_waits_are_missing():
    found = real("diff_control_a100.json.gz")
    assert found["what_if"] is None and 0.05 < found["replay_error"] < 0.08 and found["confidence"] == "low"
    assert any(note.startswith("No predictions: ") for note in found["notes"])


@cache
def labelled(file, what_if=True):
    return diagnose(traces(file), file, what_if).to_json()


def error_of(file):
    """The largest difference of a class from the mean of the truth, over the mean step."""
    row, found = truth()[file], labelled(file)["partition_ms"]
    steps = [step for step in row["steps"] if step["number"] in set(row["counted_steps"])]
    names = {name for step in steps for name in step["partition_ns"]} | set(found)
    mean = {name: np.mean([step["partition_ns"].get(name, 0) for step in steps]) for name in names}
    return max(abs(1e6 * found.get(name, 0.0) - mean[name]) for name in names) / np.mean(
        [step["ns"] for step in steps])


@needs_reference
@pytest.mark.parametrize("file", sorted(truth()))
def test_labelled_verdicts(file):
    assert labelled(file)["verdict"] in truth()[file]["accept"]
    assert labelled(file)["steps"]["numbers"] == truth()[file]["counted_steps"]
    assert labelled(file)["steps"]["windows"] == truth()[file]["windows"]


@needs_reference
def test_labelled_partitions():
    errors = [error_of(file) for file in truth()]
    assert np.median(errors) <= 0.001 and np.percentile(errors, 95) <= 0.005


@needs_reference
def test_labelled_predictions():
    errors = []
    for file, row in truth().items():
        found = {s["scenario"]: s["speedup"] for s in labelled(file)["what_if"] or ()}
        for true in row["what_if"]:
            if row["what_if_scored"] and true["speedup"] >= 1.05:
                right = [true["speedup"], *(other["speedup"] for other in true["also"] if "speedup" in other)]
                got = found.get(true["scenario"])
                errors.append(1.0 if got is None else min(abs(got / value - 1) for value in right))
    assert len(errors) > 30 and np.median(errors) <= 0.01 and np.percentile(errors, 95) <= 0.05


def test_one_step_has_no_spread():
    assert "Only 1 counted step: its spread is not known" in told(loop(1))["notes"]


def test_steps_that_do_not_count_are_said_with_the_reason():
    told = diagnose([loop(steps=6).trace()], "x").to_json()
    assert told["steps"]["count"] == 5 and told["steps"]["total"] == 6
    assert told["steps"]["left_out"] == {"the first of its profiler window": 1}
