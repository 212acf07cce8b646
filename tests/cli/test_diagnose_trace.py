"""`stepscope diagnose` of traces, and of recordings that hold trace windows."""

import json
import signal
import threading

import pytest

from profiler.cli import main
from profiler.rules.trace import stored
from profiler.run.reader import Run
from tests.rules.trace.loops import later, loop, step_ms, two_devices, without_device
from tests.rules.trace.test_cupti import KINETO
from tests.runs import CPU_STAGES_MS, STAGE_MS, make_run

LAG = {"data": 0.0, "h2d": 0.0, "forward": 0.0, "backward": 0.0, "optimizer": 0.0}


def told(capsys, *argv):
    assert main(["diagnose", *map(str, argv), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def with_trace(path, *timelines, valid=True, printed="", **planned):
    """A recording that holds these trace windows, of a command that printed something."""
    def attach(writer, start):
        for k in range(0, len(printed), 50):
            writer.output(start + k, printed[k:k + 50].encode())
        for k, line in enumerate(timelines):
            data = line.bytes() if valid else b"{"
            writer.attach(start + k, "kineto", f"{k}.trace.json", data, process=1,
                          properties={"steps": [1, 2], "valid": valid, "note": ""})

    return make_run(path, events=attach, **planned)


GPU = {"stages": STAGE_MS, "gpu": {"gpu.util": 0.3}, "lag": LAG,
       "device": {"forward": 5.1, "backward": 9.9, "optimizer": 1.2}}


def test_for_people(tmp_path, capsys):
    file = str(loop(wait_us=400).save(tmp_path / "a.json"))
    assert main(["diagnose", file]) == 0
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert text.startswith("Input-bound: 0.40 ms of 0.82 ms per step the device waits for data.\n")
    assert "data wait" in text and "batches ready" in text
    assert "5 of 6 steps counted (1 the first of its profiler window left out)" in text
    assert "Try num_workers 0 → 2" in text and "at most" in text and "verify" not in text
    assert "None" not in text and "nan" not in text.lower()


def test_tables_are_printed_if_asked_for(tmp_path, capsys):
    file = str(loop(wait_us=400).save(tmp_path / "a.json"))
    assert main(["diagnose", file]) == 0
    short = capsys.readouterr().out
    assert "relu_kernel" not in short and "launches per step 20" in short and "More with --tables" in short
    assert main(["diagnose", "--tables", file]) == 0
    text = capsys.readouterr().out
    kernel = next(line.split() for line in text.splitlines() if "relu_kernel" in line)
    assert kernel[:5] == ["relu_kernel", "100", "2.00", "0.40", "100.0"] and "More with" not in text


def test_what_holds_for_all_findings_is_said_once(tmp_path, capsys):
    assert main(["diagnose", str(loop(wait_us=400).save(tmp_path / "a.json"))]) == 0
    assert capsys.readouterr().out.count("Host costs include the profiler's own") == 1


def test_costs_of_a_trace_without_steps_are_not_per_step(tmp_path, capsys):
    line = loop(kernel_us=5)
    line.events = [e for e in line.events if not e["name"].startswith("ProfilerStep")]
    assert main(["diagnose", str(line.save(tmp_path / "a.json"))]) == 0
    text = capsys.readouterr().out
    assert "ms of the trace\n" in text and "per step" not in text.replace("figures per step are absent", "")


@pytest.mark.parametrize("second_us", [300, 0])
def test_each_of_several_devices_has_a_line(tmp_path, capsys, second_us):
    line = two_devices(second_us=second_us)
    if not second_us:
        line.events = [e for e in line.events if e["args"].get("device") != 1]
    assert main(["diagnose", str(line.save(tmp_path / "a.json"))]) == 0
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert ("  device 1: host 0.7 ms (69 %), compute 0.3 ms (30 %)" in text) is bool(second_us)
    assert ("  device 0: compute 0.6 ms (60 %), " in text) is bool(second_us)


def test_a_recording_takes_its_verdict_from_its_trace(tmp_path, capsys):
    path = with_trace(tmp_path / "a.stepscope", loop(kernel_us=47), **GPU)
    found = told(capsys, path)
    assert found["verdict"] == "compute_bound" and found["confidence"] == "high"
    assert found["partition_ms"]["compute"] == pytest.approx(0.94) and found["what_if"]
    assert found["replay_error"] is not None and found["traced_steps"]["count"] == 5
    assert found["steps"]["rule"] == "probe" and found["stages_ms"]["data"] == pytest.approx(36.2)
    assert told(capsys, make_run(tmp_path / "b.stepscope", **GPU))["verdict"] == "input_bound"


@pytest.mark.parametrize(("planned", "next_step"), [
    ({"wait_us": 400}, True), ({"kernels": 68, "kernel_us": 1, "first_us": 60}, False)])
def test_verify_is_offered_for_settings_that_it_can_try(tmp_path, capsys, planned, next_step):
    stages = {"stages": {"data": 0.01, "forward": 1.0}} if not next_step else {}
    path = with_trace(tmp_path / "a.stepscope", loop(**planned), data_cpu=1.0, cores=16,
                      host={"target.cpu": 1.0}, **{**GPU, **stages})
    assert main(["diagnose", str(path)]) == 0
    text = capsys.readouterr().out
    assert ("cuda_graphs" in text) is not next_step
    assert ("stepscope verify" in text) is next_step and ("tests num_workers" in text) is next_step


def test_host_costs_are_scaled_to_the_step_without_the_profiler(tmp_path, capsys):
    true = 0.8 * step_ms(wait_us=400)
    planned = {**GPU, "stages": {"data": 0.5 * true, "forward": 0.5 * true}}
    found = told(capsys, with_trace(tmp_path / "a.stepscope", loop(wait_us=400), **planned))
    assert found["step_ms"]["median"] == pytest.approx(true, rel=0.01)
    assert found["replay"]["scale"] < 1 and found["traced_step_ms"]["median"] == step_ms(wait_us=400)
    assert "Trace: Host costs include the profiler's own" not in found["notes"]


def test_what_the_trace_tells_is_not_lacked(tmp_path, capsys):
    reads = {**GPU, "extras": {"syncs": 40, "sync": 5e6}}
    lacking = told(capsys, make_run(tmp_path / "a.stepscope", **reads))
    assert any("--trace-steps" in item["text"] for item in lacking["lacks"])
    found = told(capsys, with_trace(tmp_path / "b.stepscope", loop(kernel_us=47), **reads))
    assert [item["text"] for item in found["lacks"] if item["rule"] == "Synchronisation"] == []
    titles = [item["rule"] for item in found["ruled_out"]]
    assert titles.count("Synchronisation") == 1 and len(set(titles)) == len(titles)


def test_one_cause_is_one_finding_with_the_evidence_of_both(tmp_path, capsys):
    path = with_trace(tmp_path / "a.stepscope", loop(wait_us=400), data_cpu=1.0, cores=16,
                      host={"target.cpu": 1.0}, **GPU)
    found = told(capsys, path)
    [finding] = [f for f in found["findings"] if f["rule"] == "input_bound"]
    assert {"probe", "trace"} <= {e["source"] for e in finding["evidence"]}
    assert finding["remedy"]["setting"] == "num_workers" and not finding["prediction"]["at_most"]


@pytest.mark.parametrize(("missing", "told_of"), [(20, True), (0, False)])
def test_what_the_command_printed_names_why_nothing_was_captured(tmp_path, capsys, missing, told_of):
    printed = KINETO.format("MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)")
    path = with_trace(tmp_path / "a.stepscope", loop(missing=missing), printed=printed, **GPU)
    found = told(capsys, path)
    said = [note for note in found["notes"] if "another profiler uses CUPTI" in note]
    assert bool(said) is told_of
    if told_of:
        assert said[0].startswith("Trace: GPU activity not captured: another profiler uses CUPTI")
        assert said[0].endswith("120 launches and no activity of a device")
        assert found["partition_ms"] is None and found["verdict"] == "input_bound"  # that of the stages


def test_the_analysis_is_kept_and_used_again(tmp_path, capsys):
    path = with_trace(tmp_path / "a.stepscope", loop(wait_us=400), **GPU)
    first = told(capsys, path)
    with Run.open(path) as run:
        [kept] = run.results(stored.KIND)
        assert kept["attachments"] == [1] and stored.stored(run) == kept
    assert told(capsys, path) == first
    with Run.open(path) as run:
        assert len(run.results(stored.KIND)) == 1


def test_an_analysis_of_another_version_or_form_is_not_used(tmp_path):
    from profiler.run.results import append_result

    path = with_trace(tmp_path / "a.stepscope", loop(wait_us=400), **GPU)
    for value in ({"engine": "other code", "attachments": [1]}, {"engine": stored.engine()},
                  {"engine": stored.engine(), "attachments": [1], "findings": [{}], "verdict": "x"}):
        append_result(path, stored.KIND, value)
    with Run.open(path) as run:
        assert stored.stored(run) is None


def test_a_cpu_recording_keeps_the_verdict_of_its_stages(tmp_path, capsys):
    path = with_trace(tmp_path / "a.stepscope", without_device(loop(wait_us=400)),
                      stages={**CPU_STAGES_MS, "data": 0.1})
    found = told(capsys, path)
    assert found["verdict"] == "compute_bound" and found["device"]["kind"] == "cpu"
    assert found["partition_ms"]["input_wait"] == pytest.approx(0.4, abs=1e-3)
    assert [s["scenario"] for s in found["what_if"]] == ["no_input_wait"]


def test_host_costs_of_a_cpu_recording_are_scaled_too(tmp_path, capsys):
    true = 0.8 * step_ms(wait_us=400)
    path = with_trace(tmp_path / "a.stepscope", without_device(loop(wait_us=400)),
                      stages={"data": 0.5 * true, "forward": 0.5 * true})
    found = told(capsys, path)
    assert found["replay"]["scale"] == pytest.approx(0.8, rel=0.01)
    assert found["replay"]["step_ms"] == pytest.approx(true, rel=0.01)


def test_several_windows_of_a_recording_count_together(tmp_path, capsys):
    later_one = later(loop(9, kernel_us=47, number=30), 1_000_000_000)
    path = with_trace(tmp_path / "a.stepscope", loop(wait_us=400), later_one, **GPU)
    found = told(capsys, path)
    assert found["traced_steps"]["count"] == 5 + 8 and len(found["traces"]) == 2
    assert any(note.startswith("Trace: 2 profiler windows of the process") for note in found["notes"])
    assert sum(found["partition_ms"].values()) == pytest.approx(
        (5 * step_ms(wait_us=400) + 8 * step_ms(kernel_us=47)) / 13, abs=1e-3)


def test_a_trace_that_cannot_be_read_leaves_the_verdict_of_stages(tmp_path, capsys):
    path = with_trace(tmp_path / "a.stepscope", loop(), valid=False, **GPU)
    assert main(["diagnose", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "input_bound" and "traces are left out" in err


def test_ctrl_c_ends_the_reading(tmp_path, capsys, monkeypatch):
    from profiler.importers import kineto

    asked = threading.Event()

    def load(paths, *, progress, cancel):
        signal.raise_signal(signal.SIGINT)
        asked.set()
        assert cancel()
        raise KeyboardInterrupt

    monkeypatch.setattr(kineto, "load", load)
    file = str(loop().save(tmp_path / "a.json"))
    before = signal.getsignal(signal.SIGINT)
    assert main(["diagnose", file]) == 130 and asked.is_set()
    assert main(["import", file, "-o", str(tmp_path / "a.stepscope")]) == 130
    assert signal.getsignal(signal.SIGINT) is before and not (tmp_path / "a.stepscope").exists()
