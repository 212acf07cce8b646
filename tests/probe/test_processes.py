"""Which processes write, and that the interpreter is otherwise as it was."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.probe.fakes import PROBE
from tests.probe.reading import read, run
from tests.waiting import until


def test_only_loops_write(tmp_path: Path) -> None:
    ran = run(tmp_path, "forked.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.said["status"] == 0
    spooled = {p.pid: p for p in ran.processes}
    # not the pool, not the loader's workers though their dataset runs a model
    assert set(spooled) == {ran.said["pid"], ran.said["child"]}
    assert len(spooled[ran.said["pid"]].training) == 4 + 12
    child = spooled[ran.said["child"]]
    assert child.records[0][0] == "hello"
    assert child.records[0][1]["ppid"] == ran.said["pid"]
    assert len(child.training) == 5
    assert child.training[0]["index"] == 0


def test_process_without_torch_writes_nothing(tmp_path: Path) -> None:
    program = "import sys, json; print(json.dumps([m for m in sys.modules if 'stepscope' in m]))"
    ran = run(tmp_path, "-c", program)
    assert ran.processes == []
    assert set(ran.said) <= {"_stepscope_probe", "_stepscope_probe.imports", "_stepscope_probe.lifeline",
                             "_stepscope_probe.process"}


def test_nothing_enters_without_a_recording(tmp_path: Path) -> None:
    ran = run(tmp_path, "-c", "import sys; assert not any('stepscope' in m for m in sys.modules)",
              env={"STEPSCOPE_SPOOL": ""})
    assert (ran.returncode, ran.stderr) == (0, "")


def test_import_of_torch_that_fails_fails_as_before(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('broken')")
    program = "import sys; sys.path.insert(0, '')\ntry:\n import torch\nexcept RuntimeError as e: print(e)"
    ran = run(tmp_path, "-c", program)
    assert (ran.stdout, ran.stderr) == ("broken\n", "")


@pytest.mark.parametrize("body, out, err", [
    ("print('shadowed', __name__)", "shadowed sitecustomize\ntrue\n", ""),
    ("raise ValueError('theirs')", "true\n", "ValueError: theirs"),
])
def test_the_shadowed_sitecustomize_runs(tmp_path: Path, body: str, out: str, err: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(f"mine = 1\n{body}\n")
    path = os.pathsep.join([str(PROBE), str(tmp_path / "other")])
    ran = run(tmp_path, "-c", "import sitecustomize; print('true' if sitecustomize.mine else 0)",
              env={"PYTHONPATH": path})
    if not err:
        assert (ran.stdout, ran.stderr) == (out, "")
    else:
        assert err in ran.stderr  # site tells it, as it does without us


def test_sitecustomize_parses_on_python_2() -> None:
    newer = (ast.AsyncFunctionDef, ast.AnnAssign, ast.JoinedStr, ast.Nonlocal, ast.NamedExpr,
             ast.YieldFrom, ast.Await)
    tree = ast.parse((PROBE / "sitecustomize.py").read_bytes())
    for node in ast.walk(tree):
        assert not isinstance(node, newer)
        if isinstance(node, ast.Raise):
            assert node.cause is None
        if isinstance(node, ast.FunctionDef):
            assert not node.args.kwonlyargs
            assert node.returns is None
        if isinstance(node, ast.Call):
            assert getattr(node.func, "id", "") != "print"
    assert (PROBE / "sitecustomize.py").read_bytes().isascii()


@pytest.mark.parametrize("path", sorted((PROBE / "_stepscope_probe").rglob("*.py")), ids=lambda p: p.name)
def test_probe_parses_on_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))


def test_kinds_of_processes() -> None:
    from _stepscope_probe.process import EAGER, INERT, LAZY, kind

    assert kind(["python", "train.py"]) == EAGER
    assert kind(["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"]) == INERT
    assert kind(["python", "-c", "from multiprocessing.spawn import spawn_main; ...",
                 "--multiprocessing-fork"]) == LAZY
    assert kind(["python", "-c", "from multiprocessing.forkserver import main; main(4, 5, [])"]) == LAZY
    assert kind(["python", "/v/lib/torch/_inductor/compile_worker/__main__.py", "--workers=2"]) == INERT


def test_attach_in_a_process_that_skips_the_probe(tmp_path: Path) -> None:
    program = (f"import sys, torch; sys.path.insert(0, {str(PROBE.parents[1])!r}); import stepscope; "
               "print(stepscope.attach(), stepscope.attach())")
    spool = tmp_path / "spool"
    spool.mkdir()
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, "STEPSCOPE_SPOOL": str(spool)})
    assert (done.stdout, done.stderr) == ("True True\n", "")
    (process,) = read(spool)
    assert [r[0] for r in process.records] == ["hello", "torch", "bye"]


def test_lifeline_ends_the_tree(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    program = ("import os, subprocess, sys, time; assert 'STEPSCOPE_LIFELINE' not in os.environ; "
               "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
               "print(p.pid, flush=True); time.sleep(600)")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, pass_fds=[ours],
                               env={**os.environ, "PYTHONPATH": str(PROBE), "STEPSCOPE_LIFELINE": str(ours),
                                    "STEPSCOPE_SPOOL": str(tmp_path)})
    os.close(ours)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        os.close(theirs)
        assert process.wait(timeout=60) == 143
        until(lambda: not _runs(child), 60)
    finally:
        if process.poll() is None:
            process.kill()
        if _runs(child):
            os.kill(child, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def test_a_lifeline_that_is_no_pipe_is_left_alone(tmp_path: Path) -> None:
    file = (tmp_path / "file").open("w+")
    file.write(json.dumps([1, 2]))
    file.seek(0)
    program = f"import os; print(os.read({file.fileno()}, 99).decode())"
    done = subprocess.run([sys.executable, "-c", program],
                          pass_fds=[file.fileno()], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(PROBE), "STEPSCOPE_SPOOL": str(tmp_path),
                               "STEPSCOPE_LIFELINE": str(file.fileno())})
    assert (done.stdout, done.stderr) == ("[1, 2]\n", "")


def test_the_beginning_of_torchs_import_leaves_a_mark(tmp_path: Path) -> None:
    """Before torch is there nothing else can be told; processes without torch leave nothing."""
    code = "import os; print(os.listdir(os.environ['STEPSCOPE_SPOOL']), os.getpid())"
    (tmp_path / "torch.py").write_text(code)
    spool = tmp_path / "spool"
    spool.mkdir()
    env = {**os.environ, "PYTHONPATH": f"{PROBE}{os.pathsep}{tmp_path}", "STEPSCOPE_SPOOL": str(spool)}
    subprocess.run([sys.executable, "-c", "pass"], env=env, check=True)
    assert not list(spool.iterdir())
    done = subprocess.run([sys.executable, "-c", "import torch"], env=env, capture_output=True, text=True,
                          check=True)
    pid = done.stdout.split()[-1]
    assert (done.stdout, done.stderr) == (f"['{pid}.entered'] {pid}\n", "")
