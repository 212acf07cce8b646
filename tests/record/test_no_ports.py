"""The recorder and all that it starts listen nowhere and are connected to nobody."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from tests.record.running import PYTHON, recording, script
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process trees as on POSIX")
WAITS = """
    import pathlib, socket, time
    {before}
    pathlib.Path("ready").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
"""


def _connections(process: psutil.Process) -> list[object]:
    found: list[object] = []
    for one in (process, *process.children(recursive=True)):
        try:
            found += one.net_connections(kind="inet")
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.parametrize("port", [False, True], ids=["a command without a port", "one with a port is seen"])
def test_no_port_is_opened(port: bool, tmp_path: Path) -> None:
    before = "kept = socket.create_server(('127.0.0.1', 0))" if port else ""
    target = script(tmp_path, WAITS.format(before=before))
    with recording(tmp_path, "--control", "--", PYTHON, str(target), stdin=-1, stdout=-1) as process:
        until(lambda: (tmp_path / "ready").exists(), 60)
        tree = psutil.Process(process.pid)
        found = [connection for _ in range(5) for connection in _connections(tree)]
        (tmp_path / "go").touch()
        process.communicate(timeout=60)
    assert bool(found) == port
