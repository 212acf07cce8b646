"""Whatever names a run, a trace or a file has: no command tells the terminal anything but text."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from profiler.cli import commands, documentation, main
from profiler.cli._common import Progress, print_json
from profiler.errors import harmless, one_line
from tests.cli.hostile import FILE, NAME, hostile_run, hostile_trace

WITHOUT_FILES = {"demo", "matrix"}  # they start recordings and read no file of others
RUN, TRACE = "{run}", "{trace}"
MORE = (
    ("diagnose", RUN, "--tables"), ("diagnose", TRACE, "--tables"), ("diagnose", TRACE, "--json"),
    ("diagnose", RUN, "--json"), ("compare", TRACE, RUN), ("compare", RUN, TRACE, "--json"),
    ("verify", RUN, "--try", "num_workers=4"), ("verify", RUN, NAME), ("verify", "--scoreboard", "{folder}"),
    ("verify", "--scoreboard", "--json", "{folder}"), ("import", TRACE, "-o", "{folder}/new" + FILE),
    ("import", TRACE, "-o", "{folder}/new.stepscope", "--json"), ("record", "--set", NAME),
    ("record", "--workload", NAME), ("sweep", "--workload", NAME, "--grid", NAME), ("workloads", NAME),
    ("report", RUN, "--format", NAME), (NAME,), (f"--{NAME}",), ("diagnose", f"--{NAME}"), (TRACE + NAME,),
)
EVERY = (*((name, word) for name in sorted(commands()) for word in (RUN, TRACE)), *MORE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    hostile_run(folder / f"{FILE}.stepscope")
    hostile_trace().save(folder / f"{FILE}.json")
    return folder


def _wild(text: str) -> set[str]:
    return {c for c in text if not c.isprintable() and c not in "\n\u00a0"}


@pytest.mark.parametrize("words", EVERY, ids=lambda words: ascii(" ".join(words)[:40]))
def test_no_command_obeys_a_name(words: tuple[str, ...], made: Path, tmp_path: Path,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    path = commands().get(words[0])
    if path and (words[0] in WITHOUT_FILES or documentation(path).startswith("Internal")):
        pytest.skip("it takes no file")
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    known = {"run": str(folder / f"{FILE}.stepscope"), "trace": str(folder / f"{FILE}.json"),
             "folder": str(folder)}
    argv = [word.format(**known) if "{" in word else word for word in words]
    main(argv)
    out, err = capsys.readouterr()
    assert not _wild(out) | _wild(err)
    assert "\u0301" * 5 not in out + err, "marks climb over the lines around"
    assert not any(line.strip().startswith("all is well") for line in (out + err).splitlines())
    assert out or err or words[0] == "report"
    if "--json" in words and out:
        json.loads(out)


def test_a_harmless_text_has_all_its_letters() -> None:
    for text in ("5\u00a0ms \u2212 3 \u00d7", "日本語", "naïve", "na\u0308ive", "\u0e01\u0e33\u0e49",
                 "\u05e9\u05c1\u05b8"):
        assert harmless(text) == text
    assert harmless("a\tb\n", "\n\t") == "a\tb\n" and harmless("a\tb\n") == r"a\tb\n"
    assert harmless("\x9b2J\u202e\ud800") == r"\x9b2J\u202e\ud800"
    assert "\u0301" * 5 not in harmless("e" + "\u0301" * 9)


def test_an_endless_name_is_one_line() -> None:
    for text in ("x" * 10**7, "\x1b" * 10**7):
        assert len(one_line(text)) < 1000


def test_json_holds_what_it_held(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": NAME, NAME: "\U000e0001\U0001e000"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"name": NAME, NAME: "\U000e0001\U0001e000"} and not _wild(out)


def test_a_bar_shows_a_name_as_text() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with Progress("Reading", 1.0, stream) as bar:
        bar.update(0.5, NAME)
    assert not _wild(stream.getvalue().replace("\r", ""))
