from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from profiler.sources import tree as tree_module
from profiler.sources.tree import TargetTree
from tests.waiting import until

WAIT = [sys.executable, "-c", "import sys; sys.stdin.readline()"]


def test_pid_given_out_again_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(WAIT, stdin=subprocess.PIPE) as process:
        tree = TargetTree(process.pid)
        assert [p.pid for p in tree.processes()] == [process.pid]
        monkeypatch.setattr(tree_module, "start_of", lambda pid: b"another start")
        monkeypatch.setattr(tree_module, "REFRESH_NS", 0)
        assert tree.processes() == []
        process.communicate(b"\n")


def test_ended_process_that_nobody_waits_for_is_not_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "REFRESH_NS", 0)
    with subprocess.Popen(WAIT, stdin=subprocess.PIPE) as process:
        tree = TargetTree(process.pid)
        assert process.stdin is not None
        process.stdin.close()

        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
        assert tree.processes() == []


def test_only_the_tree_is_in_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "REFRESH_NS", 0)
    with (
        subprocess.Popen(WAIT, stdin=subprocess.PIPE) as ours,
        subprocess.Popen(WAIT, stdin=subprocess.PIPE) as other,
    ):
        tree = TargetTree(ours.pid)
        for _ in range(3):
            assert tree.has(ours.pid) and not tree.has(other.pid)
        ours.communicate(b"\n")
        other.communicate(b"\n")
