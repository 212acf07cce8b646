"""The watchdog of the fuzzing: a case that hangs ends its worker, busy or asleep."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = """
import sys, time
from tests import fuzzing

def busy(path):
    while True:
        pass

def asleep(path):
    time.sleep(600)

fuzzing.{limit} = 0.2
fuzz = fuzzing.Fuzz("x", lambda *_: ("x", "a", b"x"), lambda: None, {what}, 1 << 30, 1 << 36)
fuzzing.work(fuzz, 0, 1, 1, 0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize(("what", "limit", "ends_by"), [
    ("busy", "HANG_S", -signal.SIGPROF), ("asleep", "ASLEEP_S", 1)])
def test_a_case_that_hangs_ends_its_worker_and_says_where(what: str, limit: str, ends_by: int) -> None:
    done = subprocess.run([sys.executable, "-c", CODE.format(what=what, limit=limit)], cwd=ROOT, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == ends_by and f"in {what}\n" in done.stderr, done.stderr
