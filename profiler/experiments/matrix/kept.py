"""A result of a matrix that was kept as JSON, as by `stepscope matrix --save`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from profiler.errors import UsageError
from profiler.experiments.matrix.words import markdown
from profiler.paths import ASSETS

KEPT = ASSETS / "matrix.json"  # the one that comes with the program


def read_kept(path: Path) -> dict[str, Any]:
    """The result in a file, of which tables can be made. UsageError when there is none in it."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        markdown(told)  # whatever it lacks shows here
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise UsageError(f"{path} holds no result of stepscope matrix", "Make one with --save") from error
    return dict(told)
