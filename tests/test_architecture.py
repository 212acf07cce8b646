"""The import arrows of the design, and the size limits. A limit that is a test is the only one that holds."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES = 300
FUNCTION_LINES = 60
SOURCES = [p for folder in ("app", "profiler", "workloads") for p in sorted((ROOT / folder).rglob("*.py"))]
EVERYTHING = [*SOURCES, ROOT / "stepscope.py", *sorted((ROOT / "tests").rglob("*.py"))]

# Who may be imported at all, outside the standard library.
OUTSIDE = {
    "app": {"PySide6", "pyqtgraph", "numpy"},
    "profiler": {"numpy", "jinja2", "psutil", "pynvml", "msgspec"},
    "workloads": {"torch", "torchvision", "PIL", "numpy"},
}
# Which of our own folders each may import.
OURS = {
    "app": {"app", "profiler"},
    "profiler": {"profiler"},
    "workloads": {"workloads"},
}
FORBIDDEN = {"app": {"torch", "sqlite3", "pynvml", "psutil"}, "profiler": {"PySide6", "torch"}}
# Inside profiler: a layer imports only itself and those after it.
BASE = {"model", "metrics", "units", "errors", "paths", "version", "visible", "machine"}
LAYERS: dict[str, set[str]] = {
    "cli": {"record", "report", "experiments", "importers", "rules", "analysis", "run", "sources", "catalog",
            "doctor", "replay", "trace"},
    "doctor": {"sources", "run"},
    "report": {"rules", "analysis", "run"},
    "experiments": {"record", "rules", "analysis", "run", "catalog"},
    "record": {"sources", "run", "catalog"},
    "sources": {"run"},
    "rules": {"replay", "analysis", "trace", "run"},
    "replay": {"analysis", "trace"},
    "analysis": {"trace", "run"},
    "importers": {"trace"},
    "trace": set(),
    "run": set(),
    "catalog": set(),
}


def imports(path: Path) -> Iterator[str]:
    """Absolute names of what a file imports, wherever in it."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                if base[:2] == ("profiler", "probe"):  # a top-level package where it runs
                    base = base[2:]
                yield ".".join([*base, *([node.module] if node.module else [])])
            elif node.module:
                yield node.module
                yield from (f"{node.module}.{a.name}" for a in node.names)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_probe(path: Path) -> bool:
    return relative(path).startswith("profiler/probe/")


@pytest.mark.parametrize("path", [p for p in SOURCES if not is_probe(p)], ids=relative)
def test_imports_point_one_way(path: Path) -> None:
    folder = relative(path).split("/")[0]
    tops = {name.split(".")[0] for name in imports(path)}
    known = {"app", "profiler", "workloads"}
    assert tops & known <= OURS[folder]
    assert not tops & FORBIDDEN.get(folder, set())
    assert tops - set(sys.stdlib_module_names) - known <= OUTSIDE[folder]


def layer(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if relative(p).startswith("profiler/") and not is_probe(p)], ids=relative
)
def test_layers_of_profiler(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    own = parts[1]
    if own == "__init__":
        return
    allowed = {own, *BASE, *LAYERS.get(own, set())}
    if own in BASE:
        allowed = BASE
    folders = {p.stem if p.is_file() else p.name for p in (ROOT / "profiler").iterdir()}
    used = {layer(n) for n in imports(path) if n.startswith("profiler.")} & folders
    assert used <= allowed


RECORDER = [p for p in SOURCES if relative(p).startswith(("profiler/record/", "profiler/sources/"))]


@pytest.mark.parametrize("path", RECORDER, ids=relative)
def test_recorder_goes_light(path: Path) -> None:
    """What runs on the GPU server beside the training brings no arrays with it."""
    assert not {"numpy", "scipy"} & {n.split(".")[0] for n in imports(path)}


@pytest.mark.parametrize("path", [p for p in SOURCES if is_probe(p)], ids=relative)
def test_probe_imports_nothing_of_ours(path: Path) -> None:
    tops = {n.split(".")[0] for n in imports(path)}
    assert tops - set(sys.stdlib_module_names) <= {"torch", "_stepscope_probe"}


@pytest.mark.parametrize("path", EVERYTHING, ids=relative)
def test_sizes(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < FUNCTION_LINES, f"{node.name} at line {node.lineno}"


def test_every_module_says_what_it_is() -> None:
    texts = {relative(p): p.read_text("utf-8") for p in SOURCES}
    silent = [name for name, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert not silent
