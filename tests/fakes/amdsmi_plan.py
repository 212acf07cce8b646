"""Plans for the stand-in of the Python package `amdsmi`, and how a process comes to find it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STANDIN = Path(__file__).parent / "amdsmi_standin"
PLAN = "STEPSCOPE_FAKE_AMDSMI_PLAN"


def write(path: Path, plan: Mapping[str, Any]) -> None:
    """Put the plan in the place of what there was, as a whole."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(plan))
    new.replace(path)


def environment(path: Path, plan: Mapping[str, Any], base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Of a process that shall find the stand-in, with the plan written to `path`."""
    write(path, plan)
    found = os.pathsep.join(filter(None, (str(STANDIN), base.get("PYTHONPATH", ""))))
    return {**base, "PYTHONPATH": found, PLAN: str(path)}
