"""The traces' part of a report: no trace can write markup, and reports of all kinds of traces are whole."""

import pytest

from profiler.cli import main
from profiler.report.html import render
from profiler.report.trace import ranks, section
from profiler.run.reader import Run
from tests.reference import needs_reference, reference_files
from tests.report.test_html import EVIL, page
from tests.rules.trace.loops import loop, told
from tests.runs import make_run


def imported(tmp_path, line):
    run = tmp_path / "a.stepscope"
    assert main(["import", str(line.save(tmp_path / "a.json")), "-o", str(run)]) == 0
    return run


def test_names_from_a_trace_are_escaped(tmp_path, capsys):
    line = loop(wait_us=400, name=EVIL)
    line.top["deviceProperties"][0]["name"] = EVIL
    text, seen = page(imported(tmp_path, line))
    assert "script" not in seen.tags and EVIL in seen.words and "<script>" not in text


def test_a_run_without_a_trace_has_no_such_part(tmp_path):
    assert section({"partition_ms": None}) is None
    with Run.open(make_run(tmp_path / "a.stepscope")) as run:
        assert "What the device did" not in render(run)


def test_withheld_predictions_say_why(tmp_path, capsys):
    with Run.open(imported(tmp_path, loop(1))) as run:
        text = render(run)
    assert "What the device did" in text and "nan" not in text.lower() and "None" not in text


@needs_reference
@pytest.mark.parametrize("file", [p.name for p in reference_files() if p.stat().st_size < 100_000])
def test_every_small_real_trace_has_a_report(file, tmp_path, capsys):
    from tests.reference import TRACES

    run = tmp_path / "a.stepscope"
    assert main(["import", str(TRACES / file), "-o", str(run)]) == 0
    _, seen = page(run)
    assert "html" in seen.tags and "None" not in seen.words


def test_operators_by_the_line_that_calls_them(tmp_path, capsys):
    line = loop(wait_us=400)
    line.python("train.py(9): main", min(e["t0"] for e in line.events), max(e["t1"] for e in line.events))
    _, seen = page(imported(tmp_path, line))
    assert "Operators by call stack" in seen.words and "train.py(9): main" in seen.words


def test_an_imported_run_is_not_said_to_lack_what_no_trace_has(tmp_path, capsys):
    with Run.open(imported(tmp_path, loop(wait_us=400))) as run:
        text = render(run)
    assert "No stages" not in text and "the recording ended early" not in text
    assert "The run was made from traces of torch.profiler." in text and "Step time, median" in text


def test_ranks_are_rows_with_what_their_steps_go_to():
    told_of = told(loop(wait_us=400, rank=0), loop(wait_us=200, rank=1))
    found = ranks(told_of)
    assert found.head[:3] == ("Rank", "verdict", "step") and "data wait" in found.head
    column = found.head.index("data wait")
    assert [row[0] for row in found.rows] == ["rank 0", "rank 1"]
    assert [float(row[column]) for row in found.rows] == pytest.approx([0.40, 0.20], abs=0.01)
    assert ranks(told(loop())) is None
    assert section(told_of)["device"] == f"NVIDIA H100 80GB HBM3, rank {told_of['rank']}"
    assert section(told(loop()))["device"] == "NVIDIA H100 80GB HBM3"
