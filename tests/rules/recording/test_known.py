"""Known answers that caught other tools: the scripts of tests/known, recorded as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.rules.base import Finding
from profiler.rules.verdict import Diagnosis, diagnose
from profiler.run.reader import Run
from tests.record.running import PYTHON, record

pytest.importorskip("torch")

KNOWN = Path(__file__).parents[2] / "known"
QUIET = 0.1  # share of the cores that others keep busy, up to which a wait shows as one


def recorded(folder: Path, name: str, *words: str) -> Diagnosis:
    done = record(folder, "--", PYTHON, str(KNOWN / name), *words, timeout=120)
    assert done.returncode == 0, done.stderr
    with Run.open(folder / "run.stepscope") as run:
        return diagnose(run)


def input_bound(found: Diagnosis) -> Finding:
    (finding,) = [f for f in found.findings if f.rule == "input_bound"]
    return finding


def test_waiting_work_without_workers(tmp_path: Path) -> None:
    """About 93 % data wait; several workers are best, also where there are two cores."""
    found = recorded(tmp_path, "waiting_loader.py")
    summary = found.facts.summary
    assert found.verdict == "input_bound" and summary is not None
    assert 0.8 < summary.stages["data"] / summary.step_ns < 0.98
    finding = input_bound(found)
    # time without a core counts as work: beside others that want them all, a part of the wait is that
    busy = (found.facts.others or 0.0) > QUIET
    assert finding.title.endswith("(storage)") or (busy and finding.title.endswith("(storage and decoding)"))
    assert finding.site and "waiting_loader.py" in finding.site
    assert finding.remedy is not None and 2 <= finding.remedy.after <= 2 * found.facts.cores


@pytest.mark.slow
def test_waiting_work_with_as_many_workers_as_cores_takes_more(tmp_path: Path) -> None:
    found = recorded(tmp_path, "waiting_loader.py", "2")
    finding = input_bound(found)
    assert finding.title.endswith("(storage)")
    assert finding.remedy is not None and finding.remedy.after > 2


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_computing_work_takes_no_more_workers_than_cores(workers: int, tmp_path: Path) -> None:
    found = recorded(tmp_path, "computing_loader.py", str(workers))
    finding = input_bound(found)
    assert found.verdict == "input_bound" and finding.title.endswith("(decoding)")
    assert finding.remedy is None or finding.remedy.after <= found.facts.cores


@pytest.mark.slow
def test_data_in_memory_has_nothing_to_blame(tmp_path: Path) -> None:
    found = recorded(tmp_path, "in_memory.py")
    assert found.verdict == "compute_bound"
    assert [f.rule for f in found.findings if f.severity != "info" and f.rule != "noisy_machine"] == []
    assert all(f.prediction is None for f in found.findings)


@pytest.mark.slow
def test_large_arrays_from_workers_are_handed_over(tmp_path: Path) -> None:
    finding = input_bound(recorded(tmp_path, "array_batches.py"))
    assert finding.title == "Data wait: workers 2 \u2192 0 (hand-over)"
