"""What a run file says, checked before it goes further. What cannot be is a ValueError."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

DEEPEST = 40  # levels of JSON: ours has five
_HIGHEST = 1 << 63
_LATEST = 1 << 62  # ns since the epoch, in 2116: differences stay within 64 bits

Check = Callable[[Any], bool]
T = TypeVar("T")


def from_json(text: str) -> Any:
    """The value of a JSON text. What is no number, or none that a file can hold, is None."""
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deep") from error
    if text.count("[") + text.count("{") > DEEPEST:
        _refuse_depth(value, DEEPEST)
    return value


def json_object(text: str) -> dict[str, Any]:
    value = from_json(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value


def meta(rows: list[tuple[Any, Any]]) -> dict[str, Any]:
    """The meta of a run. Keys that are not known may hold anything."""
    found = {}
    for key, text in rows:
        found[key] = value = from_json(text)
        if value is not None and key in _META and not _META[key](value):
            raise ValueError(f"{key} holds what it cannot hold")
    return found


def row(kind: type[T], values: tuple[Any, ...]) -> T:
    """A row of the table that holds `kind`; its last column is a JSON object."""
    values = (*values[:-1], json_object(values[-1]))
    names, checks = _columns(kind)  # type: ignore[arg-type]
    for name, check, value in zip(names, checks, values, strict=True):
        if not check(value):
            raise ValueError(f"{name} of a {kind.__name__.lower()} holds what it cannot hold")
    return kind(*values)


def content(data: Any) -> bytes:
    """Bytes. Of a number Python would make as many zeros."""
    if not isinstance(data, bytes):
        raise TypeError("bytes were expected")
    return data


def time(value: Any) -> int:
    """ns since the epoch."""
    if not _time(value):
        raise ValueError("a time that cannot be")
    return int(value)


def _refuse_depth(value: Any, left: int) -> None:
    if not isinstance(value, (dict, list)):
        return
    if not left:
        raise ValueError("JSON that is nested too deep")
    for item in value.values() if isinstance(value, dict) else value:
        _refuse_depth(item, left - 1)


def _finite(text: str) -> float | None:
    return value if math.isfinite(value := float(text)) else None


def _whole(text: str) -> int | None:
    return value if -_HIGHEST <= (value := int(text)) < _HIGHEST else None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=lambda _: None)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _time(value: Any) -> bool:
    return _int(value) and -_LATEST <= value <= _LATEST


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _object(needed: bool = False, /, **checks: Check) -> Check:
    """An object whose keys, where they are known, fit; null stands for any of them unless they are needed."""
    def check(value: Any) -> bool:
        return isinstance(value, dict) and all(
            key in value and fits(value[key]) if needed else value.get(key) is None or fits(value[key])
            for key, fits in checks.items())

    return check


def _anything(value: Any) -> bool:
    return True


def _work(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _text(value[0]) and _number(value[1])


_META: Mapping[str, Check] = {
    **dict.fromkeys(("state", "name", "notes", "kind", "cwd", "journal_note"), _text),
    **dict.fromkeys(("start_ns", "end_ns"), _time),
    **dict.fromkeys(("start_monotonic_ns", "revision"), _int),
    "rate_hz": _number,
    **dict.fromkeys(("trace", "intervene"), _mapping(_anything)),
    "command": _list(_text),
    "environment": _mapping(_text),
    "versions": _mapping(_optional(_text)),
    "workload": lambda value: _object(True, name=_text, settings=_mapping(_anything))(value) and _object(
        data=_text, work=_work)(value),
    "git": _object(commit=_text, branch=_text),
    "machine": _object(hostname=_text, system=_text, cpu=_text, cores=_number, cores_usable=_number,
                       cores_quota=_number, huge_pages=_text, memory_bytes=_number, memory_limit=_number,
                       container=_text, platform=_text),
    "exit": _object(code=_int, signal=_text, reason=_text),
    "gpu": _object(state=_text, cause=_text, reason=_text, hint=_text, driver=_text, cuda_driver=_text,
                   nvml=_text),
    "overhead": _object(wall_s=_number, cpu_s=_number, cpu_share=_number, peak_rss=_number, missed=_number,
                        sources=_mapping(_object(ticks=_number, missed=_number, asked_hz=_number,
                                                 rate_hz=_number, lateness_mean_ns=_number,
                                                 lateness_max_ns=_number, off=_text))),
    "anchors": _list(_list(_int)),
}  # fmt: skip

_OF_TYPES: Mapping[str, Check] = {"int": _int, "str": _text, "int | None": _optional(_int),
                                  "Mapping[str, Any]": lambda value: isinstance(value, dict)}


@cache
def _columns(kind: Any) -> tuple[list[str], list[Check]]:
    """The names of a dataclass's fields, and what each may hold."""
    fields = dataclasses.fields(kind)
    times = {"t_ns": _time, "started_ns": _optional(_time)}
    return [f.name for f in fields], [times.get(f.name) or _OF_TYPES[str(f.type)] for f in fields]
