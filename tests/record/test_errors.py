"""Each unusable argument: one clear line, exit 2, no file left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.record.running import record, script


@pytest.mark.parametrize(("args", "words"), [
    ((), ["nothing to record", "--workload"]),
    (("--", "no-such-program"), ["command not found", "no-such-program"]),
    (("--", "./missing"), ["command not found", "./missing"]),
    (("--", "./plain.py"), ["not executable", "python ./plain.py"]),
    (("--", "./binary"), ["neither a program nor a script", "./binary"]),
    (("--", "."), ["command"]),
    (("--rate", "0", "--", "true"), ["--rate 0", "0.1 to 100"]),
    (("--rate", "101", "--", "true"), ["--rate 101", "0.1 to 100"]),
    (("--rate", "nan", "--", "true"), ["--rate nan"]),
    (("--duration", "-1", "--", "true"), ["--duration -1"]),
    (("--steps", "0", "--", "true"), ["--steps 0"]),
    (("--trace-steps", "0", "--", "true"), ["--trace-steps 0"]),
    (("--intervene", "[1]", "--", "true"), ["--intervene", "JSON"]),
    (("--set", "a=1", "--", "true"), ["--set goes with --workload"]),
    (("--workload", "nope"), ["nope", "input_starved"]),
    (("--workload", "input_starved", "--", "true"), ["both a workload and a command"]),
    (("--workload", "input_starved", "--set", "nope=1"), ["nope", "batch_size"]),
    (("--workload", "input_starved", "--set", "workers=many"), ["workers=many"]),
    (("--workload", "image_classification", "--data", "/no/such/folder"), ["/no/such/folder"]),
    (("-o", "/no/such/folder/x.stepscope", "--", "true"), ["/no/such/folder", "does not exist"]),
    (("-o", ".", "--", "true"), ["is a folder"]),
    (("-o", "plain.py", "--", "true"), ["exists already", "--force"]),
    (("--force", "-o", "plain.py", "--", "true"), ["plain.py", "not a run file"]),
])
def test_one_clear_line(tmp_path: Path, args: tuple[str, ...], words: list[str]) -> None:
    script(tmp_path, "print(1)\n", "plain.py")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x00\x01nothing")
    binary.chmod(0o755)
    done = record(tmp_path, *args)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2, lines
    assert done.stdout == b""
    assert len(lines) == 1
    assert lines[0].startswith("stepscope: ")
    assert all(word in lines[0] for word in words), lines[0]
    assert not list(tmp_path.glob("*.stepscope*"))
    assert not list(tmp_path.glob("tmp/*"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    done = record(tmp_path, "-o", str(folder / "x.stepscope"), "--", "true")
    assert done.returncode == 2
    assert b"cannot be written to" in done.stderr


def test_options_after_the_command_belong_to_it(tmp_path: Path) -> None:
    done = record(tmp_path, "echo", "--rate", "1000", "--", "-o")
    assert (done.returncode, done.stdout) == (0, b"--rate 1000 -- -o\n")


def test_force_writes_over_a_run(tmp_path: Path) -> None:
    assert record(tmp_path, "--", "true").returncode == 0
    assert record(tmp_path, "--", "true").returncode == 2
    assert record(tmp_path, "--force", "--", "true").returncode == 0
