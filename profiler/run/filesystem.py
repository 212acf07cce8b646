"""What file system a file lies on. SQLite's -wal needs shared memory, which network file systems lack."""

from __future__ import annotations

import re
from pathlib import Path

_NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "afs", "coda",
     "lustre", "ceph", "gpfs", "beegfs", "glusterfs", "ocfs2", "gfs2", "orangefs", "pvfs2", "wekafs", "panfs",
     "davfs", "fuse", "vboxsf", "prl_fs", "vmhgfs", "drvfs")  # the last ones: folders of a machine's host
)
_MOUNTS = Path("/proc/self/mountinfo")


def file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the file system that holds `path`, as the kernel names it; None where that cannot be told.

    `mounts` is the text of /proc/self/mountinfo.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(errors="surrogateescape")
        except OSError:
            return None
    where = str(path.resolve())
    longest, found = -1, None
    for line in mounts.splitlines():
        left, dash, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if not dash or len(fields) < 5 or not kind:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # of two mounts on one folder the later one is seen
            longest, found = len(point), kind[0]
    return found


def is_network(kind: str | None) -> bool:
    """Whether a file system of this type may have its server, or its other writers, on another machine."""
    return kind is not None and (kind in _NETWORK or kind.startswith("fuse."))  # fuseblk is a local disk
