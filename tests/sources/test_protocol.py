"""What every file of a source must offer."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import profiler.sources

FILES = sorted(
    path.stem
    for path in Path(profiler.sources.__file__).parent.glob("*.py")
    if not path.stem.startswith("_") and path.stem != "tree"
)


@pytest.mark.parametrize("name", FILES)
def test_file_holds_one_source_of_its_name(name: str) -> None:
    module = importlib.import_module(f"profiler.sources.{name}")
    classes = [value for value in vars(module).values() if inspect.isclass(value)]
    (source,) = [c for c in classes if c.__module__ == module.__name__ and c.__name__.endswith("Source")]
    assert source.name == name
    assert source.interval_ns is None or source.interval_ns > 0
    for method in ("open", "read", "close"):
        assert list(inspect.signature(getattr(source, method)).parameters) == ["self", "sink", "clock"]


def test_all_sources_are_found() -> None:
    assert FILES == ["amd", "amd_slow", "host", "nvml", "nvml_slow", "spool"]
