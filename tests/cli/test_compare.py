"""`stepscope compare` of traces and of runs that hold traces."""

import json
from pathlib import Path

import pytest

from profiler.cli import main
from tests.rules.trace.loops import loop, step_ms, without_device
from tests.runs import make_run


@pytest.fixture
def pair(tmp_path):
    """A loop, and the same with half the wait, another kernel and twice the steps."""
    return (str(loop(wait_us=400).save(tmp_path / "a.json")),
            str(loop(12, wait_us=200, name="gelu").save(tmp_path / "b.json")))


def told(capsys, *argv):
    assert main(["compare", *map(str, argv), "--json"]) == 0
    out, _ = capsys.readouterr()
    return json.loads(out)


def test_figures_are_per_step_and_absolute(pair, capsys):
    found = told(capsys, *pair)
    assert found["ratio"] == pytest.approx(step_ms(400) / step_ms(200))
    assert found["a"]["steps"]["count"] == 5 and found["b"]["steps"]["count"] == 11
    partition = {row["class"]: row for row in found["partition_ms"]}
    assert partition["input_wait"]["delta_ms"] == pytest.approx(-0.2, abs=1e-3)
    kernels = {row["key"][0]: row for row in found["kernels"]["rows"]}
    assert kernels["relu_kernel"]["state"] == "vanished" and kernels["gelu_kernel"]["state"] == "new"
    assert kernels["gelu_kernel"]["b_ms"] == pytest.approx(0.4) and kernels["gelu_kernel"]["b_count"] == 20
    assert kernels["gelu_kernel"]["b_total_ms"] == pytest.approx(4.4)
    assert kernels["gelu_kernel"]["b_total_count"] == 220
    assert found["kernels"]["new"] == found["kernels"]["vanished"] == 1
    assert {row["key"][0] for row in found["operators"]["rows"]} == {"aten::relu", "aten::gelu"}
    on_device = {row["key"][0]: row for row in found["operators_device"]["rows"]}
    assert on_device["aten::gelu"]["state"] == "new" and on_device["aten::gelu"]["b_ms"] == pytest.approx(0.4)
    assert on_device["aten::relu"]["a_total_ms"] == pytest.approx(5 * 0.4)
    wait = partition["input_wait"]
    assert wait["a_total_ms"] == pytest.approx(5 * wait["a_ms"])
    assert wait["b_total_ms"] == pytest.approx(11 * wait["b_ms"])
    assert [(s["a"], s["b"]) for s in found["steps"]][:5] == [(n, n) for n in range(11, 16)]


def test_a_trace_compared_with_itself_has_no_difference(pair, capsys):
    found = told(capsys, pair[0], pair[0])
    assert found["ratio"] == 1 and found["notes"] == []
    assert all(row["delta_ms"] == 0 for row in found["partition_ms"] + found["kernels"]["rows"])
    assert main(["compare", pair[0], pair[0]]) == 0
    assert "B is as fast as A" in capsys.readouterr().out


def test_for_people(pair, capsys):
    assert main(["compare", *pair]) == 0
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert "B is 1.32 × faster than A" in text
    lines = [line.split()[:3] for line in text.splitlines()]
    assert ["step", f"{step_ms(400):.2f}", f"{step_ms(200):.2f}"] in lines
    assert main(["compare", *reversed(pair)]) == 0
    assert "B is slower: its step takes 1.32 × A's" in capsys.readouterr().out.replace("\u00a0", " ")
    assert "operator, device, ms/step" in text and "operator, host self, ms/step" in text
    assert "relu_kernel" in text and "vanished" in text and "None" not in text


def test_runs_with_traces(pair, tmp_path, capsys):
    run = str(tmp_path / "a.stepscope")
    assert main(["import", pair[0], "-o", run]) == 0
    capsys.readouterr()
    direct, stored = told(capsys, *pair), told(capsys, run, pair[1])
    assert stored["partition_ms"] == direct["partition_ms"] and stored["a"]["file"] == run


def test_other_devices_are_said(pair, tmp_path, capsys):
    line = loop(wait_us=400)
    line.top["deviceProperties"][0]["name"] = "Tesla V100-SXM2-16GB"
    found = told(capsys, pair[0], line.save(tmp_path / "v100.json"))
    assert found["notes"] == ["The devices differ: NVIDIA H100 80GB HBM3 and Tesla V100-SXM2-16GB"]


def _read_by(path, trace, version):
    """A run that holds the trace and whose used memory was read by that query."""
    def events(writer, start):
        device = writer.add_device("GPU-1", 0, "A GPU")
        track = writer.track("gpu.mem_used", device=device, properties={"version": version})
        writer.sample(track, start, 1e9)
        writer.attach(start, "kineto", "a.json", Path(trace).read_bytes())

    return make_run(path, events=events)


def test_n08_runs_by_different_memory_queries_are_compared_only_with_that_said(pair, tmp_path, capsys):
    one, other = (_read_by(tmp_path / f"{v}.stepscope", pair[0], v) for v in ("v1", "v2"))
    [note] = [note for note in told(capsys, one, other)["notes"] if "memory" in note]
    assert "v1 in A and v2 in B" in note and "do not compare" in note
    assert not [note for note in told(capsys, one, one)["notes"] if "memory" in note]
    assert main(["compare", str(one), str(other)]) == 0 and "v1 in A and v2 in B" in capsys.readouterr().out


def test_a_run_without_a_trace(pair, tmp_path, capsys):
    assert main(["compare", pair[0], str(make_run(tmp_path / "r.stepscope"))]) == 2
    assert "holds no trace" in capsys.readouterr().err


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_s11_of_fewer_than_three_steps_none_is_called_faster(pair, tmp_path, capsys, steps):
    """Also out of a run. What was measured stands there, but nothing is claimed of it."""
    line = loop(max(steps, 1), wait_us=100)
    if not steps:
        line.events = [e for e in line.events if not e["name"].startswith("ProfilerStep")]
    run = tmp_path / "short.stepscope"
    assert main(["import", str(line.save(tmp_path / "short.json")), "-o", str(run)]) == 0
    capsys.readouterr()
    for one, other in ((run, pair[1]), (pair[1], run), (run, run)):
        found = told(capsys, one, other)
        assert found["ratio"] is None and found["kernels"]["rows"]
        assert found["a" if one == run else "b"]["steps"]["count"] == steps
        [note] = [n for n in found["notes"] if "faster is not said" in n or "Without steps" in n]
        assert steps == 0 or f" {steps} " in note
        assert main(["compare", str(one), str(other)]) == 0
        text = capsys.readouterr().out
        assert "faster than A" not in text and "slower" not in text and "as fast" not in text and note in text


def test_s11_three_steps_are_enough(tmp_path, capsys):
    a, b = (loop(3, wait_us=wait).save(tmp_path / f"{wait}.json") for wait in (400, 200))
    assert told(capsys, a, b)["ratio"] == pytest.approx(step_ms(400) / step_ms(200))


def test_without_kernels_there_is_no_empty_table(tmp_path, capsys):
    for name, wait in (("a", 400), ("b", 200)):
        without_device(loop(wait_us=wait)).save(tmp_path / f"{name}.json")
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    text = capsys.readouterr().out
    assert "operator, host self" in text and "kernel, ms" not in text and "operator, device" not in text
