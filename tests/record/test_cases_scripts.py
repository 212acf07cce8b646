"""Scripts that do what they like, in odd surroundings and under odd Pythons: as without us."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from profiler.paths import own_command
from tests.record.beside import LONG, bare, same
from tests.record.mounted import needs_mounts
from tests.record.running import PYTHON, environment, opened, record, script

# Scripts that look into themselves, and Pythons that look at less

SELF = {
    "cProfile": (("-m", "cProfile"), "print(sum(range(9)))", False),
    "trace":
        ((), "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\nprint(1)", True),
    "faulthandler": (("-X", "faulthandler"), "import faulthandler; print(faulthandler.is_enabled())", True),
    "a dump of stacks later":
        ((), "import faulthandler\nfaulthandler.dump_traceback_later(600)\nprint(1)", True),
    "optimised": (("-O",), "assert False\nprint(__debug__)", True),
    "twice optimised": (("-OO",), "print(__debug__)", True),
    "isolated": (("-I",), "import sys; print(sys.flags.isolated)", True),
    "without environment": (("-E",), "import sys; print(sys.flags.ignore_environment)", True),
    "without site": (("-S",), "import sys; print('site' in sys.modules)", True),
    "safe path": (("-P",), "import sys; print(sys.flags.safe_path, '' in sys.path)", True),
    "warnings are errors": (("-W", "error"), "print(1)", True),
    "bytes are compared": (("-bb",), "print(1)", True),
    "development": (("-X", "dev"), "print(1)", True),
    "frozen modules": (("-X", "frozen_modules=on"), "import os; print(os.__name__)", True),
    "no frozen modules": (("-X", "frozen_modules=off"), "import os; print(os.__name__)", True),
    "memory is traced":
        (("-X", "tracemalloc=1"), "import tracemalloc; print(tracemalloc.is_tracing())", True),
}


@pytest.mark.parametrize("what", SELF)
def test_a_script_that_looks_into_itself(tmp_path: Path, what: str) -> None:
    flags, code, exact = SELF[what]
    command = (PYTHON, *flags, str(script(tmp_path, code)))
    if exact:
        same(tmp_path, *command)
    else:
        done = record(tmp_path, "--", *command, timeout=LONG)
        assert done.returncode == 0 and done.stdout.startswith(b"36\n")


def test_own_sitecustomize_and_startup_file(tmp_path: Path) -> None:
    script(tmp_path, "import sys; print('mine', __name__)", "lib/sitecustomize.py")
    script(tmp_path, "print('usercustomize')", "lib/usercustomize.py")
    script(tmp_path, "print('startup')", "startup.py")
    env = environment(tmp_path, PYTHONPATH="lib", PYTHONSTARTUP=str(tmp_path / "startup.py"))
    code = ("import sitecustomize, sys; "
            "print(sitecustomize.__file__, sitecustomize is sys.modules['sitecustomize'])")
    same(tmp_path, PYTHON, "-c", code, env=env)
    same(tmp_path, PYTHON, "-i", env=env, input=b"print(1)\n")  # reads the startup file


def test_a_sitecustomize_that_fails_fails_as_without_us(tmp_path: Path) -> None:
    script(tmp_path, "raise ImportError('not here')", "lib/sitecustomize.py")
    env = environment(tmp_path, PYTHONPATH="lib")
    plain = bare(tmp_path, PYTHON, "-c", "print(2)", env=env)
    done = record(tmp_path, "--", PYTHON, "-c", "print(2)", env=env, timeout=LONG)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (0, b"2\n")
    assert b"ImportError: not here" in done.stderr


# Odd surroundings

SURROUNDINGS: dict[str, str] = {
    "another folder, which goes":
        "import os, tempfile\nd = tempfile.mkdtemp()\nos.chdir(d)\nos.rmdir(d)\nprint(1)",
    "a mask": "import os\nos.umask(0o777)\nprint(os.umask(0))",
    "all files closed":
        "import os\nos.closerange(3, 1024)\nopen('f', 'w').close()\nprint(os.path.exists('f'))",
    "own handlers": ("import os, signal\nseen = []\n"
                     "for n in (1, 10, 12, 14, 15, 17, 23): signal.signal(n, lambda n, f: seen.append(n))\n"
                     "for n in (1, 10, 12, 14, 15, 17, 23): os.kill(os.getpid(), n)\nprint(seen)"),
    "a session of its own":
        "import os\nprint(os.getpid() == os.getpgrp())\ntry: os.setsid()\nexcept OSError: pass",
    "priority": "import os\nprint(os.nice(5) >= 0)",
    "no descriptors left": ("import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
                            "try:\n  while True: os.dup(1)\nexcept OSError as e: print(e.errno)"),
}


@pytest.mark.parametrize("what", SURROUNDINGS)
def test_odd_things_done_to_oneself(tmp_path: Path, what: str) -> None:
    same(tmp_path, PYTHON, str(script(tmp_path, SURROUNDINGS[what])))


@pytest.mark.parametrize("change", [
    {"HOME": "/no/such/home"}, {"HOME": ""}, {"PYTHONPATH": ":"},
    {"PYTHONPATH": "/no/such:\t::relative/\u00e9"}, {"PYTHONDONTWRITEBYTECODE": "", "PYTHONOPTIMIZE": "2"},
    {"PYTHONSAFEPATH": "1"}, {"LANG": "C", "LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONNOUSERSITE": "1"}, {"PATH": ""}, {"BIG": "x" * 120_000},
    {"PYTHONHASHSEED": "0"}, {"PYTHONWARNINGS": "error"}, {"PYTHONPROFILEIMPORTTIME": ""},
], ids=lambda change: ",".join(change))
def test_odd_environments(tmp_path: Path, change: dict[str, str]) -> None:
    code = ("import os, sys; own = ('STEPSCOPE_SPOOL', 'PYTHONPATH', 'TERM'); "
            "print(sorted((k, v) for k, v in os.environ.items() if k not in own), sys.flags)")
    same(tmp_path, PYTHON, "-c", code, env={**environment(tmp_path), **change})


def test_long_commands_and_words_that_are_no_text(tmp_path: Path) -> None:
    code = "import os, sys; print(len(sys.argv), sum(map(len, sys.argv)), os.fsencode(sys.argv[1]))"
    words = [os.fsdecode(b"caf\xe9 \xff\x01"), "", " ", "-o", "--", "\n", *["y" * 1000] * 500, "\u6e29"]
    same(tmp_path, PYTHON, "-c", code, *words)
    with opened(tmp_path) as run:
        assert len(run.meta["command"]) == 3 + len(words)


def test_a_folder_for_temporary_files_that_is_missing(tmp_path: Path) -> None:
    """Python looks for another, and so do we: nothing is made where there was nothing."""
    missing = tmp_path / "none"
    code = "import os; spool = os.environ['STEPSCOPE_SPOOL']; print(os.path.isdir(spool)); print(spool)"
    env = environment(tmp_path, TMPDIR=str(missing))
    done = record(tmp_path, "--", PYTHON, "-c", code, env=env, timeout=LONG)
    there, spool = done.stdout.decode().split()
    assert (done.returncode, there) == (0, "True"), done.stderr
    assert not missing.exists() and not Path(spool).exists()


@needs_mounts
def test_without_any_folder_for_temporary_files_nothing_is_begun(tmp_path: Path) -> None:
    """All of them are read-only: the user is told before the start, and nothing is left."""
    small = tmp_path / "small"
    small.mkdir()
    env = environment(tmp_path)
    closed = " ".join(str(path) for path in (Path("/tmp"), Path("/var/tmp"), Path("/usr/tmp"), tmp_path)
                      if path.is_dir())
    argv = own_command("record", "-o", str(small / "run.stepscope"), "--", PYTHON, "-c", "print('ran')")
    text = (f"for f in {closed}; do mount --rbind $f $f && mount -o remount,bind,ro $f || exit 98; done; "
            f"mount -t tmpfs none {small} || exit 98; {shlex.join(argv)}; code=$?; ls {small}; exit $code")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", text], cwd=tmp_path, env=env, capture_output=True,
                          text=True, timeout=LONG)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("stepscope: there is no folder for temporary files") and "TMPDIR" in line


def test_no_processes_and_threads_are_left(tmp_path: Path) -> None:
    """The kernel gives the user no further one: the command learns it as without us."""
    code = """
        import os, resource, subprocess, threading
        if os.getuid() == 0:  # who may have as many as he likes
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        for start in (lambda: subprocess.run(["true"]), threading.Thread(target=print).start, os.fork):
            try:
                start()
                os._exit(1)
            except (OSError, RuntimeError) as error:
                print(error)
        """
    done = same(tmp_path, PYTHON, str(script(tmp_path, code)))
    assert done.returncode == 0 and done.stdout.count(b"Resource temporarily unavailable") == 2, done.stdout
    assert done.stdout.count(b"can't start new thread") == 1


def test_memory_that_is_limited(tmp_path: Path) -> None:
    code = ("import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
            "try:\n  x = bytearray(1 << 30)\nexcept MemoryError:\n  print('no memory')\n  sys.exit(4)")
    assert same(tmp_path, PYTHON, "-c", code).stdout == b"no memory\n"
    shell = f"ulimit -v 600000; exec {PYTHON} -c 'print(1)'"
    same(tmp_path, "sh", "-c", shell)


@pytest.mark.parametrize("stdin", ["closed", "null", "pipe", "file"])
def test_any_standard_input(tmp_path: Path, stdin: str) -> None:
    code = ("import sys\nif sys.stdin is None: print('none')\n"
            "else:\n  print(sys.stdin.isatty(), repr(sys.stdin.read()))")
    (tmp_path / "in").write_text("from a file")
    options: dict[str, Any] = {
        "closed": {"preexec_fn": lambda: os.close(0)}, "null": {"stdin": subprocess.DEVNULL},
        "pipe": {"input": b"from a pipe"}, "file": {},
    }[stdin]
    if stdin == "file":
        for make in (bare, record):
            with (tmp_path / "in").open("rb") as file:
                words = ("--",) if make is record else ()
                done = make(tmp_path, *words, PYTHON, "-c", code, stdin=file)
            assert done.stdout == b"False 'from a file'\n"
        return
    same(tmp_path, PYTHON, "-c", code, **options)


# Many processes

def test_children_that_are_forked_and_spawned(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import multiprocessing as m, os
        def double(x):
            return 2 * x
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                with m.get_context(method).Pool(2) as pool:
                    print(method, pool.map(double, range(5)), flush=True)
            if os.fork() == 0:
                os._exit(3)
            print(os.waitstatus_to_exitcode(os.wait()[1]))
        """)
    same(tmp_path, PYTHON, str(path))


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_storm_of_short_children(tmp_path: Path, count: int) -> None:
    code = (f"import subprocess\nfor i in range({count // 20}):\n"
            "  many = [subprocess.Popen(['true']) for _ in range(20)]\n"
            "  assert not any(p.wait() for p in many)\nprint('all')")
    same(tmp_path, PYTHON, "-c", code)
    with opened(tmp_path) as run:
        assert len(run.processes) == 1  # none of them had anything to say


def test_python_children_of_a_storm_leave_nothing_in_the_spool(tmp_path: Path) -> None:
    code = ("import subprocess, sys\nfor i in range(3):\n"
            "  many = [subprocess.Popen([sys.executable, '-c', 'pass']) for _ in range(4)]\n"
            "  assert not any(p.wait() for p in many)\n")
    same(tmp_path, PYTHON, "-c", code)
    assert not list((tmp_path / "tmp").iterdir())


# Wrappers

def test_wrappers_around_python(tmp_path: Path) -> None:
    """As nsys, numactl, time or a job's script start it: the probe's settings reach through them."""
    code = "import os; print('STEPSCOPE_SPOOL' in os.environ)"
    wrapper = script(tmp_path, f"#!/bin/sh\nexec nice env A=1 {PYTHON} \"$@\"\n", "profile.sh")
    wrapper.chmod(0o755)
    done = record(tmp_path, "--", str(wrapper), "-c", code, timeout=LONG)
    assert (done.returncode, done.stdout) == (0, b"True\n")
    cleared = record(tmp_path, "--force", "--", "env", "-i", PYTHON, "-c", code, timeout=LONG)
    assert (cleared.returncode, cleared.stdout) == (0, b"False\n")
