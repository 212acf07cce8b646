"""The import arrows of the design, and the size limits. A limit that is a test is the only one that holds."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

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


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def imports(path: Path) -> Iterator[str]:
    """Absolute names of what a file imports, wherever in it."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(tree_of(path)):
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


def of_each(paths: list[Path], wrong: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """What is wrong, by file. One test of all files: a test for each takes longer to report than to run."""
    assert paths
    return {relative(path): found for path in paths if (found := wrong(path))}


def test_imports_point_one_way() -> None:
    def wrong(path: Path) -> set[str]:
        folder = relative(path).split("/")[0]
        tops = {name.split(".")[0] for name in imports(path)}
        known = {"app", "profiler", "workloads"}
        outside = tops - set(sys.stdlib_module_names) - known - OUTSIDE[folder]
        return (tops & known) - OURS[folder] | tops & FORBIDDEN.get(folder, set()) | outside

    assert not of_each([p for p in SOURCES if not is_probe(p)], wrong)


def layer(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_layers_of_profiler() -> None:
    folders = {p.stem if p.is_file() else p.name for p in (ROOT / "profiler").iterdir()}

    def wrong(path: Path) -> set[str]:
        own = path.relative_to(ROOT).with_suffix("").parts[1]
        if own == "__init__":
            return set()
        allowed = BASE if own in BASE else {own, *BASE, *LAYERS.get(own, set())}
        return ({layer(n) for n in imports(path) if n.startswith("profiler.")} & folders) - allowed

    assert not of_each([p for p in SOURCES if relative(p).startswith("profiler/") and not is_probe(p)], wrong)


def test_recorder_goes_light() -> None:
    """What runs on the GPU server beside the training brings no arrays with it."""
    recorder = [p for p in SOURCES if relative(p).startswith(("profiler/record/", "profiler/sources/"))]
    assert not of_each(recorder, lambda path: {"numpy", "scipy"} & {n.split(".")[0] for n in imports(path)})


def test_probe_imports_nothing_of_ours() -> None:
    def wrong(path: Path) -> set[str]:
        tops = {n.split(".")[0] for n in imports(path)}
        return tops - set(sys.stdlib_module_names) - {"torch", "_stepscope_probe"}

    assert not of_each([p for p in SOURCES if is_probe(p)], wrong)


def test_sizes() -> None:
    def wrong(path: Path) -> set[str]:
        lines = len(text_of(path).splitlines())
        return {f"{lines} lines"} if lines > MODULE_LINES else set()

    assert not of_each(EVERYTHING, wrong)


def test_sizes_of_functions() -> None:
    def wrong(path: Path) -> set[str]:
        return {f"{node.name} at line {node.lineno}" for node in ast.walk(tree_of(path))
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and node.end_lineno - node.lineno >= FUNCTION_LINES}

    assert not of_each(EVERYTHING, wrong)


def test_every_module_says_what_it_is() -> None:
    silent = [relative(p) for p in SOURCES if text_of(p).strip() and not ast.get_docstring(tree_of(p))]
    assert not silent
