"""Whatever is done to a trace: a result that says what was lost, or one TraceError."""

from __future__ import annotations

import gzip
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import TraceError
from profiler.importers import kineto
from tests import fuzzing
from tests.importers import fuzz
from tests.importers.healthy import healthy, training
from tests.importers.mutations import case

FEW = 120
SYNTHETIC = healthy(real=False)


@pytest.mark.parametrize("start", range(0, FEW, 40))
def test_damaged_traces_end_in_a_result_or_one_error(start: int, tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(start, start + 40):
        done, name, data = case(SYNTHETIC, number)
        path = tmp_path / name
        path.write_bytes(data)
        try:
            outcomes[fuzz.examine(path)] += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {done}") from error
    assert outcomes["noted"] and outcomes["error"] < 50  # neither all refused nor nothing noticed


def test_the_undamaged_trace_is_a_result(tmp_path: Path) -> None:
    """The control: what the cases are made from has nothing to be told about it."""
    [trace] = kineto.load(training().save(tmp_path / "trace.json"))
    assert not trace.losses.any
    assert fuzz.examine(tmp_path / "trace.json") in ("result", "noted")


def test_a_case_can_be_had_again() -> None:
    assert [case(SYNTHETIC, n) for n in range(20)] == [case(healthy(real=False), n) for n in range(20)]


@pytest.mark.parametrize("broken", [ValueError("no reason"), RecursionError(), MemoryError()])
def test_any_other_error_is_a_failure(broken: Exception, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise broken

    monkeypatch.setattr(fuzz, "diagnose", fail)
    with pytest.raises(type(broken)):
        fuzz.examine(training().save(tmp_path / "trace.json"))
    monkeypatch.setattr(fuzz, "diagnose", lambda *_: (_ for _ in ()).throw(TraceError("It is none")))
    assert fuzz.examine(tmp_path / "trace.json") == "error"


@pytest.mark.parametrize("packed", [False, True])
def test_a_refused_file_leaves_no_reader_behind(packed: bool, tmp_path: Path) -> None:
    """A thread that read on after its file was closed would take bytes of the next one."""
    text = b'no trace at all, but long' * 100_000
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    before = threading.active_count()
    said = set()
    for _ in range(10):
        with pytest.raises(TraceError) as error:
            kineto.load(path)
        said.add(str(error.value))
        del error
    assert len(said) == 1 and "begins with" in said.pop()
    assert threading.active_count() == before


@pytest.mark.parametrize("stamp", [10**17, -10**17, 2**62, 1e300, float("inf"), "1e17", "-1" + "0" * 17])
def test_times_beyond_all_bounds_are_no_base(stamp: float | str, tmp_path: Path) -> None:
    """Most events have one: what is left has its own times, and there is no overflow."""
    document = training().document(times="int")
    for event in document["traceEvents"][40:]:
        event["ts"] = stamp
    document["traceEvents"] = document["traceEvents"][::-1]  # so that the first ones are bad
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    [trace] = kineto.load(path)
    assert len(trace.host) + len(trace.device) + len(trace.memory) + len(trace.syncs) == 40
    assert max(trace.host.end) < 10**9
    assert fuzz.examine(path) == "noted"


@pytest.fixture
def at_most_a_minute() -> Iterator[None]:
    """For what would take hours if it looked at each place of a text once for every place before it."""
    def end(*_: object) -> None:
        raise AssertionError("no end in sight")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("token", ["1", "1.", "nan(", "\\\"", "} ", "}" + " " * 1000, "[", '"', "{", "-",
                                   "1.#a"])
def test_long_damage_is_looked_at_a_few_times(token: str, at_most_a_minute: None, tmp_path: Path) -> None:
    whole = training().bytes()
    cut = whole.index(b"}, {", len(whole) // 2) + 1
    path = tmp_path / "trace.json"
    path.write_bytes(whole[:cut] + (token * 400_000).encode()[:400_000] + whole[cut:])
    assert fuzz.examine(path) in ("noted", "error")


@pytest.mark.parametrize(("column", "most"), [("device", 64), ("stream", 1024), ("thread", 4096)])
def test_events_scattered_over_everything_are_left_out(column: str, most: int) -> None:
    """Each device, stream and thread costs a pass; a file with a hundred thousand of them would never end."""
    line = training()
    healthy_rows = line.trace()
    for i in range(most):
        t = 5_000_000 + 100 * i
        if column == "thread":
            line.op("aten::add", t, t + 50, thread=100 + i)
        else:
            line.kernel("k", t, t + 50, 0, **{column: 100 + i})
    trace = line.trace()
    table = trace.host if column == "thread" else trace.device
    before = healthy_rows.host if column == "thread" else healthy_rows.device
    assert len(np.unique(getattr(table, column))) == most
    assert trace.losses.invalid == len(np.unique(getattr(before, column)))
    assert len(table) == len(before) + most - trace.losses.invalid
    assert f"{column}s with most events" in " ".join(trace.notes)
    assert not healthy_rows.losses.invalid


@pytest.mark.slow
def test_ten_thousand() -> None:
    records = fuzzing.run(fuzz.FUZZ, 10_000, seed=0, workers=2)
    assert fuzzing.report(fuzz.FUZZ, records, 10_000, seed=0, keep=None) == 0
