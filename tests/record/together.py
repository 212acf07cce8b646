"""The same command several times, so close together that all of them choose the same name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# The clock of names stands still, and nobody finds a name taken before all have chosen one.
_MAIN = """
import datetime, sys, time
from pathlib import Path
from profiler.cli import _recording, main
class Still(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 2, 3, 4, 5)
datetime.datetime = Still
chosen, folder, count = _recording._new_path, Path(sys.argv[1]), int(sys.argv[2])
def together(name):
    path = chosen(name)
    (folder / str(time.monotonic_ns())).touch()
    end = time.monotonic() + 30
    while len(list(folder.iterdir())) < count and time.monotonic() < end:
        time.sleep(0.005)
    return path
_recording._new_path = together
sys.exit(main(sys.argv[3:]))
"""


def at_once(count: int, command: Sequence[str], env: Mapping[str, str]) -> list[tuple[int, str]]:
    """Exit status and standard error of each."""
    chosen = Path(env["TMPDIR"]) / "chosen"
    chosen.mkdir()
    argv = [sys.executable, "-c", _MAIN, str(chosen), str(count), *command]
    running = [subprocess.Popen(argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True) for _ in range(count)]
    return [(process.wait(60), process.stderr.read() if process.stderr else "") for process in running]
