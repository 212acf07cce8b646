"""A disk that fills up or fails, for the processes of a test: see disk.c for what a plan may say."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("disk.c")


class Disk:
    """Files below `folder` lie on it, for processes with its `environment`."""

    def __init__(self, library: Path, folder: Path, plan: str = "") -> None:
        self.library, self.folder = library, folder
        self._plan = folder.parent / f"{folder.name}.plan"
        self.plan(plan)

    def plan(self, text: str) -> None:
        """What happens from now on."""
        new = self._plan.with_suffix(".new")
        new.write_text(text + "\n", encoding="ascii")
        new.replace(self._plan)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "STEPSCOPE_FAKE_DISK": str(self.folder),
                "STEPSCOPE_FAKE_DISK_PLAN": str(self._plan)}


def build(directory: Path) -> Path:
    """The library, compiled."""
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / "disk.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library
