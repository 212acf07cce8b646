"""A trace's tables as texts: what takes most time, from where, and nothing that is not known."""

import pytest

from profiler.report.trace_tables import summary, tables
from profiler.rules.words import frame_title, kernel_title
from tests.reference import needs_reference, reference_files
from tests.rules.trace.loops import loop, told, without_device
from tests.traces import Timeline

US = 1_000


def named(line, title, most=15):
    return {table.title: table for table in tables(told(line), most)}.get(title)


def test_columns_are_as_many_as_heads():
    found = tables(told(loop(wait_us=400)))
    assert {"Device", "Kernels", "Operators", "Launches", "Longest idle gaps", "Critical path"} \
        <= {table.title for table in found}
    assert all(len(row) == len(table.head or table.rows[0]) for table in found for row in table.rows)


def test_figures_of_a_step():
    """20 kernels of 20 us, launched in 14 us each: 400 us of work."""
    kernels, operators = named(loop(), "Kernels"), named(loop(), "Operators")
    assert kernels.rows[0][:5] == ("relu_kernel", "100", "2.00", "0.40", "100.0\u00a0%")
    assert operators.rows[0][:2] == ("aten::relu", "100")
    assert operators.rows[0][operators.head.index("device self")] == "0.40"
    facts, top = summary(told(loop()))
    assert "launches per step 20" in facts and "MFU" not in facts and "memory" not in facts
    assert top == "most device time, ms/step: relu 0.40"


def test_a_trace_of_the_cpu_has_no_column_of_a_device():
    found = tables(told(without_device(loop(wait_us=400))))
    assert [table.title for table in found] == ["Operators"]
    assert found[0].head == ("Operator", "calls", "host self", "host total")


def test_operators_are_ordered_by_their_own_time():
    line = loop()
    for event in [e for e in line.events if e["name"] == "aten::relu"]:
        line.op("aten::outer", event["t0"], event["t1"])
    line.events.sort(key=lambda e: (e["t0"], e["name"] == "aten::relu"))
    assert named(line, "Operators").rows[0][0] == "aten::relu"


def test_time_in_the_functions_of_the_user():
    line = loop()
    ends = min(e["t0"] for e in line.events), max(e["t1"] for e in line.events)
    line.python("train.py(9): main", *ends)
    line.python("torch/nn/modules/module.py(7): _call_impl", ends[0] + 1, ends[1] - 1)
    table = named(line, "Your code")
    assert table.rows == [("train.py(9): main", "aten::relu", "0.40")]
    assert named(line, "Operators by call stack").rows[0][:3] == (
        "aten::relu", "torch/nn/modules/module.py(7): _call_impl", "train.py(9): main")


def test_rows_that_are_left_out_are_counted():
    line = Timeline()
    line.step(1, 0, 100 * US).step(2, 100 * US, 200 * US)
    for k in range(40):
        line.op(f"aten::op{k % 20}", k * 5 * US, k * 5 * US + (1 + k % 20) * 200)
    table = named(line, "Operators", 3)
    assert len(table.rows) == 3 and table.note.endswith("; 17 more in --json")


@pytest.mark.parametrize("name, title", [
    ("volta_sgemm_64x64_nt", "volta_sgemm_64x64_nt"),
    ("void cudnn::bn<float, 512>(int, float (*)(int), float)", "cudnn::bn<float, 512>"),
    ("void at::native::(anonymous namespace)::cat<float, 4>(at::Pack<4>)", "cat<float, 4>"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "
     "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>, at::detail::Array<char*, 3>)",
     "vectorized_elementwise_kernel<4, AddFunctor<float> >"),
    ("(odd)", "(odd)"), ("odd)", "odd)"), ("", "")])
def test_names_of_kernels(name, title):
    assert kernel_title(name) == title


def test_names_of_frames():
    assert frame_title("/opt/env/lib/python3.11/site-packages/torch/nn/functional.py(9): relu") == \
        "torch/nn/functional.py(9): relu"
    assert frame_title(" train.py(9): main") == "train.py(9): main"


@needs_reference
@pytest.mark.parametrize("file", [p.name for p in reference_files() if p.stat().st_size < 100_000])
def test_every_small_real_trace_has_whole_tables(file):
    from profiler.cli._common import plain
    from profiler.rules.trace.diagnosis import diagnose
    from tests.reference import trace

    found = plain(diagnose([trace(file)], file).to_json())
    cells = [cell for table in tables(found) for row in table.rows for cell in row]
    assert all(isinstance(cell, str) and cell not in ("None", "nan") for cell in cells)
    assert all(len(row) == len(table.head or table.rows[0]) for table in tables(found) for row in table.rows)
