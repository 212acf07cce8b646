"""Each unusable argument: one clear line, exit 2, no file left."""

from __future__ import annotations

import os
import resource
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from profiler.paths import HOME, own_command
from profiler.run.reader import Run
from tests.record.running import PYTHON, environment, record, script


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
    (("--steps", "9" * 30, "--", "true"), ["--steps", "out of range"]),
    (("--trace-steps", "1001", "--", "true"), ["--trace-steps 1001", "1 to 1000"]),
    (("--trace-every", "inf", "--", "true"), ["--trace-every inf"]),
    (("--duration", "x", "--", "true"), ["--duration", "'x'", "--help"]),
    (("--intervene", "[1]", "--", "true"), ["--intervene", "JSON"]),
    (("--intervene", '{"nm_workers": 4}', "--", "true"), ["nm_workers", "no such setting", "num_workers"]),
    (("--intervene", '{"num_workers": 1e400}', "--", "true"), ["num_workers=inf", "a whole number from 0"]),
    (("--intervene", '{"pin_memory": "yes"}', "--", "true"), ["pin_memory=yes", "true or false"]),
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


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_force_leaves_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "special"
    if kind == "pipe":
        os.mkfifo(path)
    elif os.geteuid() == 0:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    else:
        pytest.skip("only root makes a device")
    before = path.stat()
    done = record(tmp_path, "-o", str(path), "--force", "--", "true")
    assert done.returncode == 2 and b"is left as it is" in done.stderr
    assert path.stat() == before


def test_no_home_names_the_variable(tmp_path: Path) -> None:
    code = ("from profiler import paths; from pathlib import Path; from profiler.errors import UsageError\n"
            "def nobody(): raise RuntimeError('Could not determine home directory.')\n"
            "Path.home = nobody\n"
            "for call in (paths.runs_dir, paths.cache_dir):\n"
            "    try: call()\n"
            "    except UsageError as error: print(error)\n")
    env = {key: value for key, value in environment(tmp_path).items()
           if key not in ("STEPSCOPE_RUNS", "STEPSCOPE_CACHE", "XDG_CACHE_HOME")}
    done = subprocess.run([PYTHON, "-c", code], env=env, cwd=HOME, capture_output=True, text=True, timeout=60)
    assert "STEPSCOPE_RUNS" in done.stdout and "STEPSCOPE_CACHE" in done.stdout


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    """The command runs as without us; a file named relative to nowhere is refused."""
    def run(output: str) -> subprocess.CompletedProcess[bytes]:
        command = shlex.join(own_command("record", "-o", output, "--", "echo", "ran"))
        text = f"mkdir gone && cd gone && rmdir ../gone && {command}"
        return subprocess.run(["sh", "-c", text], cwd=tmp_path, env=environment(tmp_path, PYTHONPATH=":"),
                              capture_output=True, timeout=60)

    done = run(str(tmp_path / "run.stepscope"))
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done.stderr
    with Run.open(tmp_path / "run.stepscope") as opened:
        assert opened.meta["cwd"] == "" and opened.state == "finished"
    done = run("relative.stepscope")
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"relative.stepscope" in done.stderr


def test_the_status_is_the_commands_when_stdout_is_full(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = own_command("record", "--json", "-o", str(tmp_path / "run.stepscope"), "--",
                              "sh", "-c", "exit 7")
        done = subprocess.run(command, env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE,
                              timeout=60)
    assert done.returncode == 7 and b"standard output cannot be written" in done.stderr


def test_closed_streams_stay_closed_for_the_command(tmp_path: Path) -> None:
    """Our files must not get their numbers: what the command prints would go into them."""
    probe = "ls /proc/self/fd > open.txt; exit 5"
    command = own_command("record", "-o", str(tmp_path / "run.stepscope"), "--", "sh", "-c", probe)
    done = subprocess.run(["sh", "-c", f"{shlex.join(command)} <&- >&- 2>&-"], cwd=tmp_path,
                          env=environment(tmp_path), timeout=60)
    assert done.returncode == 5
    with Run.open(tmp_path / "run.stepscope") as opened:
        assert opened.meta["exit"]["code"] == 5


@pytest.mark.parametrize("mode", [(), ("--control",)])
def test_more_inherited_descriptors_than_select_takes(tmp_path: Path, mode: tuple[str, ...]) -> None:
    def inherit() -> None:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, most), most))
        null = os.open(os.devnull, os.O_RDONLY)
        for number in range(3, 1100):
            if number != null:
                os.dup2(null, number)

    command = own_command("record", "-o", str(tmp_path / "run.stepscope"), *mode, "--", "sh", "-c", "exit 6")
    with subprocess.Popen(command, env=environment(tmp_path), close_fds=False, preexec_fn=inherit,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.wait(60) == 6
