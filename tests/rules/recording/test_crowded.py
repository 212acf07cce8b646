"""Rules about a host that is crowded or churns memory, and about ranks that wait, on planned runs."""

import pytest

from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.model import STAGES
from profiler.rules.base import rules
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.units import NBSP
from tests.runs import CPU_STAGES_MS, MS, make_run

RULES = {rule.name: rule for rule in rules()}
STEP = sum(CPU_STAGES_MS.values())  # ms
QUIET = {"loop.waiting": 0.002, "loop.system": 0.015, "loop.faults": 4000.0, "loop.switches": 5.0,
         "target.cpu": 1.0, "target.waiting": 0.0, "host.cpu": 0.51}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


def counted(live, thread_cpu=0.98, torch_threads=2, **planned):
    """A plan for make_run: what the kernel counts, on two cores. `thread_cpu`: share of the step."""
    told = {**QUIET, **live}

    def put(writer, start):
        process = writer.update_process(1, {"torch_threads": torch_threads}) or 1
        for metric, value in told.items():
            if metric.startswith("loop.") and value is not None:
                track = writer.track(metric, process=process)
                for k in range(40):
                    writer.sample(track, start + k * 100 * MS, value)

    host = {metric: value for metric, value in told.items() if not metric.startswith("loop.")}
    extras = {"thread_cpu": thread_cpu * STEP * MS, "data_cpu": 0.5 * MS}
    return {"events": put, "host": host, "extras": extras, "cores": 2, "stages": CPU_STAGES_MS} | planned


def outcome(rule, path, **plan):
    with Run.open(make_run(path, **plan)) as run:
        return RULES[rule].check(gather(run, training_process(run)))


def finding(rule, path, **plan):
    found = outcome(rule, path, **plan)
    assert len(found.findings) == 1, found
    return found.findings[0]


OVER = {"loop.waiting": 0.66, "target.cpu": 1.87, "target.waiting": 3.36, "host.cpu": 0.99}
TAKEN = {"loop.waiting": 0.5, "target.cpu": 1.0, "target.waiting": 1.0, "host.cpu": 1.0}


def test_a_quiet_machine_has_nothing_to_blame(path):
    with Run.open(make_run(path, **counted({}))) as run:
        found = diagnose(run)
    assert found.verdict == "compute_bound"
    assert {f.rule for f in found.findings} <= {"compute_bound", "input_bound"}
    ruled = dict(found.ruled_out)
    assert ruled["Threads and cores"] == "0.0 of 56.0 ms per step: 1.0 threads want a core, of 2"
    assert ruled["Other programs"] == "0.0 of 56.0 ms per step, others keep 0.0 cores busy"
    assert ruled["Memory calls"].startswith("0.3 of 56.0 ms per step, ")


def test_threads_of_the_programs_own(path):
    found = finding("threads", path, **counted(OVER, thread_cpu=0.35, torch_threads=1))
    assert found.title == "5.2 threads on 2 cores" and found.severity == "error"
    assert found.cost_ms == pytest.approx(0.62 * STEP, rel=0.05)
    assert found.remedy is None and found.prediction is None and "own" in found.advice
    told = {e.text: e.value for e in found.evidence}
    assert told["The loop's thread could run and had no core, mean per step"] == pytest.approx(0.66 * STEP)
    assert told["Times it was put off its core, mean per step"] == pytest.approx(5 * STEP / 1e3)
    assert outcome("noisy_machine", path.with_name("b.stepscope"), **counted(OVER, thread_cpu=0.35)).ruled_out


def test_a_crowded_loop_is_not_called_input_bound(path):
    stages = {"data": 3.0, "forward": 12.0, "backward": 30.0, "optimizer": 8.0, "other": 3.0}
    with Run.open(make_run(path, **counted(OVER, thread_cpu=0.35, stages=stages))) as run:
        found = diagnose(run)
    assert found.verdict == "compute_bound" and found.findings[0].rule == "threads"
    assert "the program's own threads keep the loop off the cores for 62 % of it" in found.decision.reason
    assert not {"input_bound", "host_bound"} & {f.rule for f in found.findings}


@pytest.mark.parametrize(("plan", "setting", "before", "after"), [
    ({"meta": {"workload": {"name": "speech", "settings": {"threads": 8}}}}, "threads", 8, 2),
    ({}, "threads", 8, 2),
    ({"meta": {"machine": {"cores": 8, "cores_usable": 2}}}, "OMP_NUM_THREADS", None, "2"),
    ({"meta": {"environment": {"OMP_NUM_THREADS": "1"}}}, "threads", 8, 2),
    ({"meta": {"environment": {"OMP_NUM_THREADS": "8"}}}, "OMP_NUM_THREADS", "8", "2"),
    ({"workers": 2, "host": {**OVER, "target.workers_cpu": 1.2}}, "threads", 8, 1),
    ({"workers": 2, "host": {**OVER, "target.workers_cpu": 0.4}}, "threads", 8, 1),
    ({"workers": 2, "host": {**OVER, "target.workers_cpu": 0.05}}, "threads", 8, 2),
    ({"host": {**OVER, "target.cpu": 1.1}}, "threads", 8, 1),
])
def test_fewer_threads_of_an_operator_where_they_are_too_many(path, plan, setting, before, after):
    plan = {**counted(OVER, thread_cpu=0.35, torch_threads=8), **plan}
    plan["host"] = {m: v for m, v in plan["host"].items() if not m.startswith("loop.")}
    found = finding("threads", path, **plan)
    assert found.remedy.to_json() == {"setting": setting, "from": before, "to": after}
    assert found.prediction.at_most and found.prediction.high > 2


def test_a_program_that_sets_its_threads_itself_hears_of_that(path):
    plan = counted(OVER, thread_cpu=0.35, torch_threads=8, meta={"environment": {"OMP_NUM_THREADS": "1"}})
    found = finding("threads", path, **plan)
    assert found.remedy.setting == "threads" and "torch.set_num_threads(2)" in found.advice


@pytest.mark.parametrize(("waiting", "severity"), [(0.5, "warning"), (0.1, "info")])
def test_other_programs_on_the_cores(path, waiting, severity):
    found = finding("noisy_machine", path, **counted({**TAKEN, "loop.waiting": waiting}, thread_cpu=0.5))
    assert found.severity == severity and found.cost_ms == pytest.approx(waiting * STEP)
    assert outcome("threads", path.with_name("b.stepscope"), **counted(TAKEN, thread_cpu=0.5)).ruled_out


@pytest.mark.parametrize(("waiting", "confidence"), [(0.5, "low"), (0.1, "medium")])
def test_a_verdict_on_a_machine_that_others_use_is_not_sure(path, waiting, confidence):
    plan = counted({**TAKEN, "loop.waiting": waiting}, thread_cpu=0.5)
    with Run.open(make_run(path, **plan)) as run:
        found = diagnose(run).decision
    assert found.confidence == confidence
    assert ("other programs keep the loop off the cores for 50 % of it" in found.reason) == (waiting == 0.5)


def test_a_container_with_less_than_it_has_threads_for(path):
    """Two cores' time of 64: none of others' programs are to blame for what the container may not use."""
    live = {**OVER, "host.cpu": 0.4}
    plan = counted(live, thread_cpu=0.35, cores=64, meta={"machine": {"cores": 64, "cores_usable": 64,
                                                                     "cores_quota": 2.0}})
    assert finding("threads", path, **plan).title == "5.2 threads on 2 cores"
    assert outcome("noisy_machine", path.with_name("b.stepscope"), **plan).ruled_out


@pytest.mark.parametrize("rule", ["threads", "noisy_machine", "allocator_bound"])
def test_what_the_kernel_does_not_count_is_lacked(path, rule):
    plan = counted({"loop.waiting": None, "loop.faults": None})
    assert "not" in outcome(rule, path, **plan).lacks


def test_memory_that_is_fetched_anew(path):
    found = finding("allocator_bound", path, **counted({"loop.system": 0.48, "loop.faults": 285e3}))
    assert found.severity == "error" and found.cost_ms == pytest.approx(0.48 * STEP - 0.5, rel=0.01)
    told = {e.text: (e.value, e.unit) for e in found.evidence}
    assert told["Page faults of the thread, mean per step"] == (round(285 * STEP), "count")
    assert told["Memory fetched by them, mean per step"] == (pytest.approx(285 * STEP * 4096 / 1e6), "MB")


@pytest.mark.parametrize("live", [
    {"loop.system": 0.3, "loop.faults": 50.0},    # the kernel works for files: no memory is fetched
    {"loop.system": 0.03, "loop.faults": 30e3},
])
def test_other_work_of_the_kernel_is_no_memory_call(path, live):
    assert outcome("allocator_bound", path, **counted(live)).ruled_out


def test_memory_that_the_loader_fetches_is_a_matter_of_the_data_wait(path):
    plan = counted({"loop.system": 0.48, "loop.faults": 285e3})
    plan["extras"] = {**plan["extras"], "data_cpu": 0.5 * STEP * MS}
    assert outcome("allocator_bound", path, **plan).ruled_out


def test_huge_pages_are_few_and_long(path):
    live = {"loop.system": 0.4, "loop.faults": 300 * 17.0}
    assert outcome("allocator_bound", path, **counted(live)).ruled_out
    machine = {"cores": 2, "cores_usable": 2, "huge_pages": "always"}
    huge = counted(live, meta={"machine": machine})
    assert finding("allocator_bound", path.with_name("b.stepscope"), **huge).cost_ms > 0.3 * STEP


@pytest.mark.parametrize(("calls", "found"), [(16.0, True), (0.0, False)])
def test_calls_of_the_driver_on_a_gpu(path, calls, found):
    def events(writer, start):
        track = writer.track("torch.driver_calls", process=1, device=1)
        for k in range(30):
            writer.sample(track, start + 600 * MS + k * 100 * MS, k * 100 / STEP * calls)

    device = {"forward": 20, "backward": 30, "optimizer": 3, "h2d": 0.1}
    told = outcome("allocator_bound", path, stages=CPU_STAGES_MS, device=device, lag={"data": 1.0},
                   gpu={"gpu.util": 0.5}, events=events)
    assert bool(told.findings) == found, told
    if found:
        assert told.findings[0].evidence[0].value == pytest.approx(calls, rel=0.05)


def test_the_straggler_is_named(path, monkeypatch):
    found = told_of_ranks(path, monkeypatch, [(5.0, 27.0), (18.0, 14.0)])
    assert found.verdict == "communication_bound" and found.decision.gain == pytest.approx(36 / 23)
    assert found.headline == f"13.0{NBSP}ms of 36.0{NBSP}ms per step wait for other ranks"
    first = found.findings[0]
    assert first.rule == "communication_bound" and first.title == "The ranks wait for rank 1"
    assert first.severity == "error" and first.cost_ms == pytest.approx(13.0)
    assert found.to_json()["estimate_ms"]["communication"] == pytest.approx(13.0)


def test_even_ranks_do_not_wait(path, monkeypatch):
    found = told_of_ranks(path, monkeypatch, [(10.0, 21.0), (10.8, 20.2)])
    assert found.verdict == "compute_bound"
    assert "communication_bound" not in {f.rule for f in found.findings}
    assert dict(found.ruled_out)["Communication"].startswith("the ranks wait 0.8 of 35.0 ms per step")


def test_a_rank_that_waits_for_its_data_is_input_bound_not_the_others(path, monkeypatch):
    """Rank 1 waits 12 ms for its data, and the other for its gradients as long."""
    found = told_of_ranks(path, monkeypatch, [(10.0, 22.0, 0.5), (10.0, 10.5, 12.0)])
    assert found.verdict == "input_bound" and found.facts.rank == 1
    assert found.findings[0].rule == "input_bound" and found.findings[1].title == "The ranks wait for rank 1"


def test_ranks_with_steps_of_their_own_length_do_not_wait_for_each_other(path, monkeypatch):
    found = told_of_ranks(path, monkeypatch, [(10.0, 20.0), (30.0, 10.0)])
    assert found.verdict == "compute_bound"
    assert "makes its steps together" in dict(found.lacks)["Communication"]


def told_of_ranks(path, monkeypatch, each):
    """The diagnosis of ranks, of each (forward, backward, data) in ms."""
    from tests import runs

    plans = iter(each)
    steps = runs._steps

    def own(writer, process, count, names, stages, *rest):
        forward, backward, *data = next(plans)
        planned = {**stages, "forward": forward, "backward": backward, "data": data[0] if data else 0.5,
                   "optimizer": 2.0, "other": 1.5, "h2d": 0.0}
        return steps(writer, process, count, {f"step.{s}": planned[s] for s in STAGES}, planned, *rest)

    monkeypatch.setattr(runs, "_steps", own)
    with Run.open(make_run(path, ranks=len(each), steps=80)) as run:
        return diagnose(run)

