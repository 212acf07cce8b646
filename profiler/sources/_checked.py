"""Values from lines that another process wrote, checked before they go further."""

from __future__ import annotations

import math
from typing import Any

MAX_COUNT = 2**53  # beyond it a float64 is no exact count


class BadRecord(Exception):
    """A line that does not say what its code promises."""


def count(value: Any) -> int:
    """A whole number in [0, 2**53]."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRecord
    if isinstance(value, float) and not value.is_integer():  # also refuses NaN and infinities
        raise BadRecord
    if not 0 <= value <= MAX_COUNT:
        raise BadRecord
    return int(value)


def optional_count(value: Any) -> int | None:
    return None if value is None else count(value)


def text(value: Any, limit: int = 1000) -> str:
    """A string that can be written as UTF-8, cut at `limit` characters."""
    if not isinstance(value, str):
        raise BadRecord
    return value[:limit].encode("utf-8", "replace").decode("utf-8")


def mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRecord
    return value


def plain(value: Any, depth: int = 4) -> Any:
    """The value as strict JSON can carry it: no NaN, no infinities, bounded in size and depth."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_COUNT else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return text(value)
    if depth == 0:
        return None
    if isinstance(value, list):
        return [plain(item, depth - 1) for item in value[:200]]
    if isinstance(value, dict):
        return {text(key, 100): plain(item, depth - 1) for key, item in list(value.items())[:200]}
    return None
