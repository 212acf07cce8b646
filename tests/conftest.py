"""What every test has: no display, and no files outside its own folders."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No test of this project asks how long an example takes: machines are shared, and it would fail by chance.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every process they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_number = itertools.count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own, with a short name.

    pytest's has the name of the test in it. Loader workers put a socket below TMPDIR, whose path may have
    107 bytes: with one more the worker says nothing, and the loop waits for its first batch for ever.
    """
    return tmp_path_factory.mktemp(f"t{next(_number)}", numbered=False)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, settings and the data of workloads go to a folder of the test session."""
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("STEPSCOPE_RUNS", str(base / "runs"))
    monkeypatch.setenv("STEPSCOPE_CACHE", str(base / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(base / "config"))
    monkeypatch.delenv("STEPSCOPE_SPOOL", raising=False)


@pytest.fixture
def reference() -> Path:
    """Real traces and known answers, where this checkout has them beside it."""
    path = Path(__file__).resolve().parent.parent.parent / "shared" / "reference"
    if not path.is_dir():
        pytest.skip("no reference data beside the checkout")
    return path
