"""Damaged traces give what is left of them and say what is missing; whole ones say nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from profiler.errors import TraceError
from profiler.importers import kineto
from profiler.trace.model import Trace
from tests.traces import Timeline

TS = b'"ts":1000000000002.5'  # inside the timeline below, which begins at 1e12 us
MEMCPY = (b'{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,%b,"dur":%b,'
          b'"args":{"bytes":5%b}}')
OPERATOR = b'{"ph":"X","cat":"cpu_op","name":"%b","pid":4242,"tid":1,%b,"dur":2}'
STEPS = 5
END = STEPS * 10_000  # ns, of the timeline


def timeline() -> Timeline:
    line = Timeline(rank=0)
    for i in range(STEPS):
        t = 10_000 * i
        line.op(f"aten::op{i}", t, t + 10_000).call("cudaLaunchKernel", t + 100, t + 300, i + 1)
        line.kernel(f"kernel{i}", t + 1_000, t + 5_000, i + 1, grid=[1, 2, 3])
    return line


def with_events(text: bytes) -> bytes:
    """The timeline with further events in its middle."""
    whole = timeline().bytes()
    at = whole.index(b'{"ph": "X", "cat": "cpu_op", "name": "aten::op2"')
    return whole[:at] + text + b", " + whole[at:]


def load(tmp_path: Path, data: bytes, name: str = "trace.json") -> Trace:
    (tmp_path / name).write_bytes(data)
    [trace] = kineto.load(tmp_path / name)
    return trace


def names(trace: Trace) -> list[str]:
    return [trace.names[code] for code in trace.host.name]


def assert_rest_is_whole(trace: Trace, more_host: int = 0, more_device: int = 0) -> None:
    """Beside the event in question everything is as in the healthy file."""
    assert (len(trace.host), len(trace.device)) == (2 * STEPS + more_host, STEPS + more_device)
    assert (trace.host.start.min(), trace.host.end.max()) == (0, END)
    assert trace.rank == 0


def test_healthy(tmp_path: Path) -> None:
    trace = load(tmp_path, with_events(MEMCPY % (TS, b"1", b',"memory bandwidth (GB/s)":1.5e3')))
    assert_rest_is_whole(trace, more_device=1)
    assert not trace.losses.any and trace.notes == () and trace.losses.events == 3 * STEPS + 1


# T01


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity", "1e400", "-nan(ind)",
                                   "1.#INF"])
def test_numbers_that_are_none(tmp_path: Path, value: str) -> None:
    said = b',"memory bandwidth (GB/s)":' + value.encode()
    trace = load(tmp_path, with_events(MEMCPY % (TS, b"0", said)))
    assert_rest_is_whole(trace, more_device=1)
    assert trace.losses.missing_values == 1 and "missing: 1" in " ".join(trace.notes)
    assert 5 in trace.device.bytes.tolist()


@pytest.mark.parametrize("value", ["inf", "NaN", "1e400", "null", '"soon"', "[]", "1e18", "9" * 30,
                                   "9" * 5000])
@pytest.mark.parametrize("which", ["ts", "dur"])
def test_times_that_are_none(tmp_path: Path, which: str, value: str) -> None:
    time = TS if which == "dur" else b'"ts":' + value.encode()
    trace = load(tmp_path, with_events(MEMCPY % (time, b"1" if which == "ts" else value.encode(), b"")))
    assert_rest_is_whole(trace)
    assert trace.losses.invalid == 1 and trace.losses.examples[0].startswith("Memcpy HtoD")


def test_a_name_that_looks_like_a_number_stays(tmp_path: Path) -> None:
    """Only the missing value is mended, not what stands in a text of the same chunk."""
    name = rb'f<float, nan, 1e400>(\": inf, x)'
    trace = load(tmp_path, with_events(OPERATOR % (name, TS) + b", " + MEMCPY % (TS, b"0", b',"q":inf')))
    assert 'f<float, nan, 1e400>(": inf, x)' in names(trace)


# T03, T04


@pytest.mark.parametrize("raw, name", [
    (rb"C:\users\x", r"C:\users\x"), (rb"C:\new\table\users", r"C:\new\table\users"), (b"a\x01b", "a\x01b"),
    (b"a\nb", "a\nb"), (b"a\tb", "a\tb"), (b"a\xf8b", "a\ufffdb"), (rb"a\ud800", "a\ufffd"),
    (rb"\udc00a", "\ufffda"), (b"C:\\dir\\", "C:\\dir\\"), (b"nul\x00", "nul\x00")])
def test_texts_that_are_no_json(tmp_path: Path, raw: bytes, name: str) -> None:
    trace = load(tmp_path, with_events(OPERATOR % (raw, TS)))
    assert_rest_is_whole(trace, more_host=1)
    assert name in names(trace)
    assert trace.losses.repaired == 1 and any("repaired" in note for note in trace.notes)
    "".join(trace.names).encode()  # what goes into files and reports


@pytest.mark.parametrize("raw, name", [
    (rb"C:\\users\\x", r"C:\users\x"), (rb"a\nb", "a\nb"), (rb"\ud83d\ude00", "\U0001f600"),
    ("Größe 温度".encode(), "Größe 温度"), (rb"say \"}, {\" twice", 'say "}, {" twice')])
def test_texts_that_are_json_stay(tmp_path: Path, raw: bytes, name: str) -> None:
    trace = load(tmp_path, with_events(OPERATOR % (raw, TS)))
    assert name in names(trace) and not trace.losses.any


@pytest.mark.parametrize("stack, said", [(b"a\xf8.py", "a\ufffd.py"), (rb"C:\users.py", r"C:\users.py")])
def test_arguments_are_mended_too(tmp_path: Path, stack: bytes, said: str) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,%b,"dur":2,"args":{"Call stack":"%b"}}'
    trace = load(tmp_path, with_events(event % (TS, stack)))
    assert said in {trace.names[code] for code in trace.host.stack if code >= 0}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = with_events(OPERATOR % ("Größe".encode(), TS)).decode()
    trace = load(tmp_path, text.encode(encoding))
    assert_rest_is_whole(trace, more_host=1)
    assert "Größe" in names(trace) and not trace.losses.any


# T06


@pytest.mark.parametrize("times, reason", [
    (b'"ts":0,"dur":0', "far from all others"), (TS + b',"dur":-1', "negative"), (TS, "no duration"),
    (TS + b',"dur":null', "no duration"), (b'"dur":1', "no usable time"), (TS + b',"dur":1e12', "far from"),
    (b'"ts":-5e14,"dur":1', "far from")])
def test_events_without_a_usable_time_stretch_nothing(tmp_path: Path, times: bytes, reason: str) -> None:
    event = b'{"ph":"X","cat":"kernel","name":"lost","pid":0,"tid":7,%b}' % times
    trace = load(tmp_path, with_events(event))
    assert_rest_is_whole(trace)
    assert trace.losses.invalid == 1 and trace.losses.events == 3 * STEPS + 1
    [example] = trace.losses.examples
    assert example.startswith("lost: ") and reason in example


def test_most_kernels_without_a_time_are_not_the_trace(tmp_path: Path) -> None:
    lost = b", ".join([b'{"ph":"X","cat":"kernel","name":"lost","pid":0,"tid":7,"ts":0,"dur":0}'] * 50)
    trace = load(tmp_path, with_events(lost))
    assert_rest_is_whole(trace)
    assert trace.losses.invalid == 50


@pytest.mark.parametrize("text, loss", [
    (b'{"cat":"kernel","name":"lost","pid":0,"tid":7,"ts":1,"dur":1}', "invalid"),
    (b'{"ph":null,"name":"lost"}', "invalid"),
    (b'{"ph":"B","name":"lost","pid":1,"tid":1,"ts":1000000000001}', "unfinished"),
    (b'{"ph":"E","name":"lost","pid":1,"tid":1,"ts":1000000000001}', "unfinished"),
    (b"null", "unreadable"), (b"[]", "unreadable"), (b'"text"', "unreadable"),
    (b'{"ph":"X","args":{"a":[1,2}}', "unreadable"), (b'{"ph":"X","args":' + b"[" * 100_000, "unreadable"),
    (b'{"ph":"X","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "unreadable")])
def test_what_is_no_event(tmp_path: Path, text: bytes, loss: str) -> None:
    trace = load(tmp_path, with_events(text))
    assert_rest_is_whole(trace)
    assert getattr(trace.losses, loss) == 1 and len(trace.notes) >= 1


def test_null_name_and_text_duration_are_events(tmp_path: Path) -> None:
    event = b'{"ph":"X","cat":"kernel","name":null,"pid":0,"tid":7,%b,"dur":"5"}' % TS
    trace = load(tmp_path, with_events(event))
    assert_rest_is_whole(trace, more_device=1)
    assert not trace.losses.any and 5_000 in (trace.device.end - trace.device.start).tolist()


@pytest.mark.parametrize("old, new", [(b"}, {", b"} {"), (b"}, {", b"},, {"), (b"}, {", b"}, ], {")])
def test_commas_and_brackets_between_events(tmp_path: Path, old: bytes, new: bytes) -> None:
    at = b', {"ph": "X", "cat": "cpu_op", "name": "aten::op3"'
    whole = timeline().bytes()
    assert at in whole
    assert_rest_is_whole(load(tmp_path, whole.replace(at, at.replace(b", {", new[1:], 1))))


# T07


@pytest.mark.parametrize("lost", [60, 200, 500, 1000])
def test_a_cut_file_is_read_up_to_the_cut(tmp_path: Path, lost: int) -> None:
    whole = timeline().bytes()
    events = json.dumps(timeline().document()["traceEvents"]).encode()
    text = whole[:whole.index(events) + len(events) - lost]
    trace = load(tmp_path, text)
    at = trace.losses.truncated_at
    assert at is not None and 0 < len(text) - at < 250 and f"byte {at}" in " ".join(trace.notes)
    complete = text[:at].count(b'"ph"')
    assert len(trace.host) + len(trace.device) == complete == trace.losses.events
    json.loads(text[:at].rstrip(b" ,") + b"]}")


def test_a_cut_right_after_an_event(tmp_path: Path) -> None:
    text = timeline().bytes()
    text = text[:text.rindex(b"}]")]
    trace = load(tmp_path, text + b"}")
    assert_rest_is_whole(trace)
    assert trace.losses.truncated_at == len(text) + 1


@pytest.mark.parametrize("end", [b"]", b"", b",", b",\n", b" "])
def test_the_bare_list_needs_no_end(tmp_path: Path, end: bytes) -> None:
    events = json.dumps(timeline().document()["traceEvents"]).encode()[:-1]
    trace = load(tmp_path, events + end)
    assert (len(trace.host), len(trace.device)) == (2 * STEPS, STEPS) and not trace.losses.any


@pytest.mark.parametrize("lost", [1, 6, 9, 60, 200])
def test_a_cut_gzip_file(tmp_path: Path, lost: int) -> None:
    packed = gzip.compress(timeline().bytes())
    trace = load(tmp_path, packed[:-lost], "trace.json.gz")
    assert "cut off" in trace.notes[0]
    if lost <= 8:  # only the checksum is missing
        assert_rest_is_whole(trace)
    else:
        assert 0 < len(trace.host) <= 2 * STEPS


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    line = timeline()
    for i in range(2000):
        line.op(f"aten::op{i * 7919 % 1000}", 10_000 * i, 10_000 * i + 9_000)
    packed = bytearray(gzip.compress(line.bytes()))
    packed[len(packed) // 2:len(packed) // 2 + 20] = b"\xff" * 20
    trace = load(tmp_path, bytes(packed), "trace.json.gz")
    assert 100 < len(trace.host) < 2000 + 2 * STEPS
    assert "damaged" in trace.notes[0]


@pytest.mark.parametrize("data, said", [
    (b"", "is empty"), (b" \n", "is empty"), (b"\0" * 100, "is empty"), (b"{}", "no list of traceEvents"),
    (b'{"traceEvents": null}', "no list of traceEvents"), (b"[]", "no events"), (b"[", "no events"),
    (b'{"traceEvents": []}', "no events"), (b'{"traceEvents": [', "no events"), (b"[1, 2]", "no events"),
    (b'{"traceEvents": [{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}]}', "no events"),
    (b"[" * 100_000, "no events"), (b'{"a":' * 100_000, "no list of traceEvents"),
    (b"<!DOCTYPE html><html>404</html>", "begins with '<!DOCTYPE html>"), (b"PK\x03\x04....", "file of zip"),
    (b"\x1f\x8b\x08\x00aaaa", "damaged"), (b"null", "no trace")])
def test_nothing_to_read_is_an_error(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(TraceError, match=said) as caught:
        load(tmp_path, data)
    assert caught.value.hint and "trace.json" in caught.value.message


def test_an_error_says_what_was_wrong_with_the_events(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="2 of 2 events left out"):
        load(tmp_path, b'[{"ph":"X","name":"a","ts":1},{"ph":"X","name":"b","ts":2,"dur":-1}]')


def test_damage_beside_the_events(tmp_path: Path) -> None:
    whole = timeline().bytes()
    trace = load(tmp_path, whole.replace(b'"schemaVersion": 1', b'"schemaVersion": nan, "x": "C:\\users"'))
    assert_rest_is_whole(trace)
    text = json.dumps({"traceEvents": timeline().document()["traceEvents"],
                       "distributedInfo": {"rank": 0}, "traceName": "long" * 10}).encode()
    trace = load(tmp_path, text[:-20])
    assert_rest_is_whole(trace)
    assert "not all of it" in trace.notes[0]
