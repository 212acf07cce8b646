"""The file system of a path, from the kernel's list of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.run.filesystem import file_system, is_network

MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:30 / /nonexistent rw,relatime shared:1 - nfs4 server:/home rw
3 2 0:31 / /nonexistent/fast\\040disk rw - xfs /dev/sdb rw
4 1 0:32 / /nonexistent2 rw - fuse.sshfs host: rw
5 2 0:33 / /nonexistent/over rw - tmpfs tmpfs rw
6 2 0:34 / /nonexistent/over rw - cifs //nas/x rw
broken line
"""


@pytest.mark.parametrize(("path", "kind", "network"), [
    ("/somewhere/a", "ext4", False),
    ("/nonexistent/user/a", "nfs4", True),
    ("/nonexistent/fast disk/a", "xfs", False),
    ("/nonexistent2/a", "fuse.sshfs", True),
    ("/nonexistent/over/a", "cifs", True),
    ("/nonexistent3/a", "ext4", False),
])
def test_longest_mount_wins(path: str, kind: str, network: bool) -> None:
    assert file_system(Path(path), MOUNTS) == kind
    assert is_network(kind) is network


def test_unknown_is_local() -> None:
    assert file_system(Path("/a"), "") is None
    assert not is_network(None)
    assert not is_network("fuseblk")
    assert all(map(is_network, ("fuse", "fuse.s3fs", "9p", "vboxsf")))


def test_this_machine(tmp_path: Path) -> None:
    kind = file_system(tmp_path / "a.stepscope")
    assert kind is None or (kind and not kind.startswith("/"))
