"""The main thread is called out of its waits."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probe.fakes import PROBE

assert PROBE.is_dir()

WAITS = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
from _stepscope_probe.kick import Kick
called = threading.Event()
kick = Kick(called.set)
{before}
kick.listen()
r, w = os.pipe()
def other():
    kick.send()
    for _ in range({looks}):
        if called.wait(0.2):
            print("called", flush=True)
            break
        kick.again()
    os.write(w, b"x")
threading.Thread(target=other).start()
os.read(r, 1)
kick.deafen()
signal.pthread_kill(threading.main_thread().ident, signal.SIGURG)
kick.send()
print(signal.getsignal(signal.SIGURG).name)
"""


@pytest.mark.parametrize(("before", "looks", "said"), [
    ("", 300, "called\nSIG_DFL\n"),
    ("signal.signal(signal.SIGURG, signal.SIG_IGN)", 1, "SIG_IGN\n"),  # called or not: as it comes
])
def test_s08_a_thread_that_waits_is_called_and_no_signal_of_the_script_taken(before: str, looks: int,
                                                                             said: str) -> None:
    done = subprocess.run([sys.executable, "-c", WAITS.format(before=before, looks=looks), str(PROBE)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == said if not before else done.stdout.endswith(said)


def test_s08_a_call_that_came_just_before_the_wait_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe import window

    monkeypatch.setattr(window, "time", SimpleNamespace(sleep=lambda s: None, monotonic_ns=lambda: 0))
    for needed, made in ((2, 2), (100, window._ASKED - 1)):
        asked: list[str] = []
        still = SimpleNamespace(profile=1, _number=1, _stands_still=lambda now: True)

        def again(still: Any = still, asked: list[str] = asked, needed: int = needed) -> None:
            asked.append("again")
            if len(asked) > needed:
                still.profile = None

        still._kick = SimpleNamespace(send=partial(asked.append, "send"), again=again)
        window.TraceWindow._watch(still, 1)
        assert asked == ["send", *["again"] * made]
