"""Nothing in the tree can make code out of data: no pickle, no eval, no archive unpacked by its own names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "stepscope.py",
           *(p for folder in ("app", "profiler", "workloads") for p in sorted((ROOT / folder).rglob("*.py")))]
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml",
           "code", "xmlrpc", "socketserver", "http", "ftplib", "urllib"}
CALLS = {"eval", "exec", "execfile", "compile", "__import__"}
METHODS = {"extractall", "unpack_archive", "load_extension", "enable_load_extension", "popen", "getoutput"}
WHOLE = {("torch", "load"), ("os", "system")}  # np.load refuses pickles unless it is told to allow them
KEYWORDS = {"allow_pickle", "shell"}


def wrong(tree: ast.AST) -> Iterator[str]:
    """What could run, or write where it likes, what a file says."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.partition(".")[0] in MODULES:
                yield node.module
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in CALLS:
                yield called.id
            elif isinstance(called, ast.Attribute):
                owner = called.value.id if isinstance(called.value, ast.Name) else ""
                if called.attr in METHODS or (owner, called.attr) in WHOLE:
                    yield f"{owner}.{called.attr}"
            for word in node.keywords:
                off = isinstance(word.value, ast.Constant) and word.value.value is False
                if word.arg in KEYWORDS and not off:
                    yield f"{word.arg}="


def test_no_code_comes_out_of_data() -> None:
    found = {str(path.relative_to(ROOT)): list(wrong(ast.parse(path.read_text("utf-8")))) for path in SOURCES}
    assert len(found) > 100
    assert not {path: words for path, words in found.items() if words}


@pytest.mark.parametrize("text", [
    "import pickle", "from pickle import loads", "import yaml", "eval(text)", "exec(text)",
    "import marshal as m", "np.load(path, allow_pickle=True)", "torch.load(path)", "os.system(text)",
    "subprocess.run(text, shell=True)", "tar.extractall()", "db.enable_load_extension(True)",
    "from http.server import HTTPServer", "compile(text, '', 'exec')",
])
def test_each_of_them_is_seen(text: str) -> None:
    assert list(wrong(ast.parse(text)))


@pytest.mark.parametrize("text", ["re.compile(text)", "torch.compile(model)", "model.eval()", "box.exec()",
                                  "subprocess.run(words, shell=False)", "json.loads(text)"])
def test_what_only_looks_like_them_is_not(text: str) -> None:
    assert not list(wrong(ast.parse(text)))
