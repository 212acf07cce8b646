"""The process that reads the GPUs: what it takes along when it dies, and what not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.record.gpu_recording import PATIENCE, Record, held_by, loaded, tracks
from tests.record.running import opened, running
from tests.waiting import until

CRASHES = [("nvmlDeviceGetPowerUsage", signal.SIGSEGV), ("nvmlDeviceGetPcieThroughput", signal.SIGABRT),
           pytest.param("nvmlDeviceGetTemperature", signal.SIGBUS, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("symbol", "number"), CRASHES)
def test_n17_a_library_that_crashes_takes_only_its_own_values_along(
    watched: Record, tmp_path: Path, symbol: str, number: signal.Signals
) -> None:
    with watched("ret nvmlDeviceGetTotalEnergyConsumption 3") as one:
        one.wait_more("gpu.util")
        one.wait_event("field_absent", 2)
        one.plan.add(f"crash {symbol} {int(number)}")
        gap = one.wait_event("gap")
        one.plan.set("ret nvmlDeviceGetTotalEnergyConsumption 3")
        back = one.wait_event("source_back")
        one.wait_more("gpu.util")
        one.end()
    assert f"the GPU driver's library crashed ({number.name}) in nvml" in gap.text
    assert gap.data["source"] == "GPU" and gap.data["reason"] in gap.text and gap.severity == "warning"
    with opened(tmp_path) as run:
        assert run.meta["exit"]["code"] == 7 and len(run.devices) == 2
        for gpu in (0, 1):
            [track] = tracks(run, "gpu.util", gpu)  # the same one, before and after
            times = [int(t) for t in run.values(track)[0]]
            assert min(times) < gap.t_ns < max(times)
            assert not [t for t in times if gap.t_ns < t < gap.t_ns + 10**9]  # the pause before another try
        kinds = [event.kind for event in run.events()]
        # What both readers found is told once: of two GPUs one field.
        assert (kinds.count("gap"), kinds.count("source_back"), kinds.count("field_absent")) == (1, 1, 2)
        [host] = run.find("host.cpu")
        assert [int(t) for t in run.values(host.id)[0] if gap.t_ns < t < back.t_ns]
        assert run.meta["overhead"]["sources"]["nvml"]["missed"] >= 5  # of ten a second


def test_n17_a_library_that_crashes_as_it_starts_is_tried_again(watched: Record, tmp_path: Path) -> None:
    with watched("crash nvmlInitWithFlags 11") as one:
        gap = one.wait_event("gap")
        assert one.events("source_off") == [] and one.run.devices == []
        gpu = one.run.meta["gpu"]
        assert (gpu["state"], gpu["cause"]) == ("absent", "crashed") and "(SIGSEGV)" in gpu["reason"]
        one.plan.set()
        one.wait_more("gpu.power")
        one.end()
    assert "(SIGSEGV) in nvmlInitWithFlags" in gap.text
    with opened(tmp_path) as run:
        assert run.meta["gpu"]["state"] == "ok" and len(run.devices) == 2


@pytest.mark.slow  # ten seconds pass before the third life
def test_n17_a_call_that_crashes_twice_is_left_out(watched: Record, tmp_path: Path) -> None:
    with watched("gpus 1", "crash@3 nvmlDeviceGetPowerUsage 11") as one:  # in each life anew
        first, second = one.wait_event("gap"), one.wait_event("gap", 2)
        absent = one.wait_event("field_absent")
        one.wait_more("gpu.util")
        one.end()
    assert "without" not in first.text
    assert second.text.endswith("from now on without nvmlDeviceGetPowerUsage")
    assert absent.data["field"] == "power" and "library crashes in it" in absent.text
    with opened(tmp_path) as run:
        assert [event.kind for event in run.events()].count("gap") == 2
        assert run.meta["gpu"]["state"] == "ok"


@pytest.mark.slow  # ten seconds pass before the third life
def test_n05_a_driver_that_is_loaded_anew_after_a_crash_is_read_again(watched: Record) -> None:
    with watched() as one:
        one.wait_more("gpu.util")
        one.plan.set("crash nvmlDeviceGetPowerUsage 6")
        one.wait_event("gap")
        one.plan.set("ret nvmlInitWithFlags 9")
        one.wait_event("source_off")
        assert one.events("source_back") == []
        one.plan.set()
        one.wait_event("source_back")
        one.wait_more("gpu.util")
        assert len(one.events("gap")) == len(one.events("source_off")) == 1
        one.run.refresh()
        assert one.run.meta["gpu"]["state"] == "ok"
        one.end()


def test_n17_gpus_that_come_back_under_another_index_keep_their_tracks(
    watched: Record, tmp_path: Path
) -> None:
    with watched("util:0 11", "util:1 22") as one:
        one.wait_more("gpu.util", 1)
        reader = one.reader()
        # its whole next life sees the cards the other way round
        one.plan.set("card:0 1", "card:1 0", "util:0 11", "util:1 22")
        reader.send_signal(signal.SIGKILL)
        assert "ended (SIGKILL)" in one.wait_event("gap").text
        one.wait_event("source_back")
        one.wait_more("gpu.util", 0)
        one.wait_more("gpu.util", 1)
        one.end()
    with opened(tmp_path) as run:
        assert len(run.devices) == 2
        for gpu in (0, 1):
            assert len(tracks(run, "gpu.util", gpu)) == 1


def test_n17_the_recorder_never_loads_the_library(watched: Record) -> None:
    with watched() as one:
        one.wait_more("gpu.util")
        reader = one.reader()
        assert reader is not None
        asked = {"recorder": psutil.Process(one.recorder.pid), "reader": reader, "target": one.target()}
        holds = [name for name, process in asked.items() if loaded(process)]
        one.end()
    assert holds == ["reader"]


def test_n17_the_reader_holds_nothing_of_the_targets(watched: Record) -> None:
    with watched() as one:
        one.wait_more("gpu.util")
        reader, target = one.reader(), one.target()
        assert reader not in target.children(recursive=True)
        assert target.create_time() <= reader.create_time()  # the target comes first
        assert os.getsid(reader.pid) == reader.pid  # no terminal: keys are the target's alone
        held = held_by(reader)
        assert not [name for name in held if "stepscope" in name or name.startswith(("/dev/pts", "/dev/tty"))]
        assert not held & {name for name in held_by(target) if name.startswith("pipe:")}
        one.end()


@pytest.mark.parametrize("state", ["reads", "stands still", "hangs"])
def test_n17_no_reader_outlives_a_recorder_that_is_killed(watched: Record, state: str) -> None:
    with watched(*(["hang nvmlInitWithFlags"] if state == "hangs" else [])) as one:
        reader = until(one.reader, PATIENCE)
        if state == "hangs":
            until(lambda: loaded(reader), PATIENCE)
        else:
            one.wait_more("gpu.util")
        if state == "stands still":  # then only the system can end it
            reader.suspend()
        target = one.target()
        one.recorder.kill()
        one.recorder.wait()
        until(lambda: not running(reader.pid), PATIENCE, "the end of the reader")
        assert running(target.pid)
        (one.folder / "end").touch()
        until(lambda: not running(target.pid), PATIENCE)


@pytest.mark.parametrize("symbol", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetTemperature"])
def test_n11_a_library_that_hangs_holds_up_neither_recording_nor_end(
    watched: Record, tmp_path: Path, symbol: str
) -> None:
    with watched(f"hang {symbol}") as one:
        reader = until(one.reader, PATIENCE)
        one.wait_more("gpu.util") if symbol == "nvmlDeviceGetTemperature" else until(
            lambda: loaded(reader), PATIENCE)
        one.end()
        assert not running(reader.pid)
    with opened(tmp_path) as run:
        assert run.meta["exit"]["code"] == 7 and run.state == "partial"
        assert run.find("host.cpu") and "overhead" in run.meta


def test_n11_a_library_that_hangs_as_a_whole_comes_back(watched: Record, tmp_path: Path) -> None:
    with watched("gpus 1") as one:
        one.wait_more("gpu.util")
        one.plan.set("gpus 1", "hang *")
        absent = one.wait_event("field_absent")
        one.wait_more_of_host()
        one.plan.set("gpus 1")
        one.wait_event("field_back")
        one.wait_more("gpu.util")
        one.end()
    assert "does not answer" in absent.text
    with opened(tmp_path) as run:
        assert [event.kind for event in run.events() if event.kind in ("gap", "source_off")] == []


def test_n11_a_reader_that_stands_still_holds_up_no_end(watched: Record, tmp_path: Path) -> None:
    with watched() as one:
        one.wait_more("gpu.util")
        reader = one.reader()
        reader.suspend()
        one.end()
        assert not running(reader.pid)
    with opened(tmp_path) as run:
        assert run.meta["exit"]["code"] == 7 and tracks(run, "gpu.util")
        said = [event.text for event in run.events() if event.kind == "source_stuck"]
        assert "did not end in time" in said[-1]  # left behind after a second, not ended for its long silence


@pytest.mark.slow  # five seconds pass before it is said
def test_n11_a_library_that_hangs_as_it_starts_is_said_once(watched: Record) -> None:
    with watched("hang nvmlInitWithFlags") as one:
        event = one.wait_event("source_stuck")
        one.plan.set()
        one.wait_more("gpu.util")
        assert len(one.events("source_stuck")) == 1
        one.end()
    assert event.text == "the nvml source does not answer; its data has a gap"


def test_without_a_gpu_no_process_stays(watched: Record) -> None:
    with watched("gpus 0") as one:
        one.wait_event("source_off")
        until(lambda: one.reader() is None, PATIENCE)
        one.end()
        assert one.events("gap") == []


def test_what_the_reader_costs_is_the_recorders_cost(watched: Record, tmp_path: Path) -> None:
    with watched() as one:
        one.wait_more("gpu.util")
        one.end()
    with opened(tmp_path) as run:
        overhead = run.meta["overhead"]
        assert list(overhead["sources"]) == ["nvml", "nvml_slow", "host", "spool"]
        nvml_ticks = overhead["sources"]["nvml"]
        assert nvml_ticks["asked_hz"] == 10 and nvml_ticks["ticks"] >= 2 and nvml_ticks["lateness_max_ns"] > 0
