"""The pure parts of a recording."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from app.spec import LaunchSpec
from profiler.machine import cpu_quota
from profiler.paths import PROBE
from profiler.record import metadata
from profiler.record.clock import Clock
from profiler.record.environment import Probing, target_environment
from profiler.record.options import Options, Outcome
from profiler.record.output import HEAD, TAIL, Output
from profiler.record.private import remove_folder
from profiler.record.start import record_command
from profiler.run.reader import MOST_PROCESSES
from profiler.sources.spool import MAX_EVER
from tests.record.pieces import Pieces


def test_clock_follows_the_monotonic_clock() -> None:
    clock = Clock()
    before, now, after = time.monotonic_ns(), clock.now_ns(), time.monotonic_ns()
    assert clock.from_monotonic(before) <= now <= clock.from_monotonic(after)
    assert clock.from_monotonic(clock.start_monotonic_ns + 5) == clock.start_wall_ns + 5
    pair = clock.add_anchor()
    assert clock.anchors == [(clock.start_monotonic_ns, clock.start_wall_ns), pair]


@pytest.mark.parametrize(("before", "after"), [
    (None, []), ("", []), ("/a", ["/a"]), (f"{PROBE}:/a", ["/a"]), ("/a::/b", ["/a", str(Path.cwd()), "/b"]),
])
def test_probe_is_first_on_the_path_without_empty_entries(before: str | None, after: list[str]) -> None:
    base = {} if before is None else {"PYTHONPATH": before}
    env = target_environment(base, Probing(Path("/spool")), workload=False)
    assert env["PYTHONPATH"].split(os.pathsep) == [str(PROBE), *after]


def test_a_workload_sees_the_probe_only_and_nothing_of_an_outer_recording() -> None:
    base = {"PYTHONPATH": "/users", "STEPSCOPE_CACHE": "/c", "STEPSCOPE_TRACE": "{}",
            "STEPSCOPE_LIFELINE": "3"}
    probing = Probing(Path("/spool"), intervene={"num_workers": 2})
    env = target_environment(base, probing, workload=True)
    assert env == {"PYTHONPATH": str(PROBE), "STEPSCOPE_SPOOL": "/spool", "STEPSCOPE_CACHE": "/c",
                   "STEPSCOPE_INTERVENE": '{"num_workers": 2}'}


def test_trace_windows() -> None:
    assert Options(Path("x")).trace() is None
    assert Options(Path("x"), trace_steps=4).trace() == {
        "start_step": 30, "steps": 4, "max_seconds": 20.0, "every_seconds": None}
    short = Options(Path("x"), trace_every_s=5.0, steps=20).trace()
    assert short is not None
    assert (short["start_step"], short["steps"], short["every_seconds"]) == (6, 8, 5.0)


def test_exit_as_a_shell_tells_it() -> None:
    assert Outcome(Path("x"), "partial", "ended", -9, 0, 1.0).exit_meta() == {
        "code": 137, "signal": "SIGKILL", "reason": "ended"}


def test_environment_of_the_run_holds_no_secret() -> None:
    env = {"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "2", "RANK": "1", "PYTHON_API_KEY": "s",
           "TORCH_TOKEN": "s", "MALLOC_ARENA_MAX": "1", "HOME": "/", "RANKING": "x", "SLURM_PASSWORD": "s"}
    assert metadata.environment(env) == {
        "CUDA_VISIBLE_DEVICES": "0", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "2", "RANK": "1"}


def test_git_of_a_checkout(tmp_path: Path) -> None:
    assert metadata.git(tmp_path) is None
    (tmp_path / "file").write_text("1")
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for args in (["init", "-q", "-b", "work"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", *args], cwd=tmp_path, check=True)
    found = metadata.git(tmp_path)
    assert found is not None
    assert (found["branch"], found["dirty"], len(found["commit"])) == ("work", False, 40)
    (tmp_path / "file").write_text("2")
    assert (metadata.git(tmp_path) or {})["dirty"] is True


def test_beginning_and_end_of_much_output_are_kept() -> None:
    sink = Pieces()
    output = Output(sink)  # type: ignore[arg-type]
    written = bytearray()
    largest = 0
    for turn in range(400):
        data = (b"\r%07d" % turn) * (1_000_000 if turn == 100 else 2500)
        output.add(data)
        written += data
        before = sink.number
        output.flush(turn)
        largest = max(largest, sum(len(sink.pieces.get(k, b"")) for k in range(before + 1, sink.number + 1)))
    kept = b"".join(sink.pieces.values())
    assert TAIL + HEAD <= len(kept) <= HEAD + 2 * TAIL
    assert largest <= 2 * TAIL + 100_000
    assert kept[:HEAD] == written[:HEAD]
    assert kept[-TAIL:] == written[-TAIL:]
    assert len(kept) + output.cut == len(written)
    assert sink.events == ["output_cut"]


def test_s09_output_that_cannot_be_kept_moves_no_number() -> None:
    """Numbers of pieces are those of the run file: what it did not take has none."""
    sink = Pieces()
    output = Output(sink)  # type: ignore[arg-type]
    for failed in (None, "the disk is full", None):
        sink.failed = failed
        output.add(b"x" * 1000)
        output.flush(1)
    assert sink.number == output._pieces
    assert sum(map(len, sink.pieces.values())) == 2000


def test_command_line_of_a_recording() -> None:
    argv = record_command(workload="w", settings={"on": True, "n": 2}, intervene={"num_workers": 1},
                          output=Path("/r"), name="-x", json_result=True, steps=5)
    assert argv[argv.index("record"):] == [
        "record", "-o", "/r", "--workload=w", "--steps=5", "--name=-x",
        "--intervene=" + json.dumps({"num_workers": 1}), "--set", "on=true", "--set", "n=2", "--json"]
    argv = LaunchSpec(command=("python", "t.py", "--", "-o"), capture="trace", rate_hz=20.0).argv()
    assert argv[argv.index("record"):] == [
        "record", "--trace-steps=8", "--rate=20.0", "--control", "--", "python", "t.py", "--", "-o"]


def test_a_recorder_takes_no_more_processes_than_are_read() -> None:
    """Those that send, and the target itself."""
    assert MAX_EVER + 1 <= MOST_PROCESSES


def test_the_private_folder_goes_whatever_became_of_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    for turn_into in (lambda path: path.mkdir(), lambda path: path.write_text("x"),
                      lambda path: path.symlink_to(outside), lambda path: None):
        spool = tmp_path / "spool"
        turn_into(spool)
        remove_folder(spool)
        assert not spool.exists() and not spool.is_symlink()
    assert (outside / "kept").exists()


@pytest.mark.parametrize(("files", "cores"), [
    ({}, None), ({"cpu.max": "max 100000"}, None), ({"cpu.max": "250000 100000"}, 2.5),
    ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
    ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}, 1.5),
    ({"cpu.max": "x"}, None), ({"cpu.max": ""}, None)])
def test_share_of_a_container(files: dict[str, str], cores: float | None, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert cpu_quota(tmp_path, "4:cpu,cpuacct:/docker/of-the-host\n0::/\n") == cores
