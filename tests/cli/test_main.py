"""The command line itself: help, wrong words, errors, and the window it opens."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from profiler import cli
from profiler.cli import commands, documentation, main
from profiler.paths import entry_point


@pytest.fixture
def no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_and_the_protocol(name, capsys):
    path = commands()[name]
    doc = documentation(path)
    assert doc and len(doc.partition("\n")[0]) <= 100
    assert main([name, "--help"]) == 0
    assert f"stepscope {name}" in capsys.readouterr().out


def test_help_groups_the_commands(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "diagnose" in text and text.index("Record") < text.index("diagnose")
    assert "_common" not in text
    for name, path in commands().items():
        assert (f"\n  {name} " in text) != documentation(path).startswith("Internal")


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("stepscope 0.")


@pytest.mark.parametrize(("argv", "line"), [
    (["diagnos"], "neither a command nor a file: diagnos. Did you mean stepscope diagnose?"),
    (["qwertz"], "neither a command nor a file: qwertz. See stepscope --help"),
    (["--colour"], "unknown option --colour. See stepscope --help"),
    (["diagnose", "/nowhere/a.stepscope"], "/nowhere/a.stepscope"),
])
def test_what_cannot_be_used_is_one_line_and_two(argv, line, capsys):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("stepscope: ") and line in err and err.count("\n") == 1


def test_an_unknown_option_of_a_command(capsys):
    assert main(["diagnose", "--nope", "x"]) == 2
    assert "unrecognized arguments: --nope" in capsys.readouterr().err


def test_no_display_names_the_demo(no_display, monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    assert main([]) == 2
    err = capsys.readouterr().err
    assert "stepscope demo --headless" in err and err.count("\n") == 1


def test_no_qt_names_the_extra(no_display, monkeypatch, capsys):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert main([]) == 2
    assert 'pip install "stepscope[gui]"' in capsys.readouterr().err


def test_qt_without_its_libraries_is_one_line(monkeypatch, capsys):
    def broken(name):
        raise ImportError("libEGL.so.1: cannot open shared object file")

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr(cli.importlib, "import_module", broken)
    assert main([]) == 2
    assert "libEGL.so.1" in capsys.readouterr().err


def test_a_file_opens_the_window(monkeypatch, tmp_path):
    file = tmp_path / "a.stepscope"
    file.touch()
    opened = []

    class Window:
        @staticmethod
        def run(files):
            opened.extend(files)
            return 0

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr(cli.importlib, "import_module", lambda name: Window if name == "app.main" else None)
    assert main([str(file)]) == 0
    assert opened == [str(file)]


def test_ctrl_c_ends_without_a_traceback(monkeypatch, capsys):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_main", interrupted)
    assert main(["diagnose"]) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_that_has_left_is_no_error():
    shown = subprocess.Popen([sys.executable, str(entry_point()), "--help"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={"PYTHONUNBUFFERED": "1"})
    shown.stdout.close()
    assert shown.stderr.read() == b""
    shown.stderr.close()
    assert shown.wait(60) in (0, 141)


def test_a_narrow_code_page_shows_plain_text(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    main(["--version"])
    print("1\u00a0224 \u2192 1.84\u00a0\u00d7 \u6e29")
    sys.stdout.flush()
    assert raw.getvalue().splitlines()[-1] == b"1 224 -> 1.84 x ?"


def ended(*args, **options):
    """(status, stderr) of `stepscope ARGS` in a process of its own."""
    argv = [sys.executable, "-P", str(entry_point()), *args]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False, **options)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("argv", [
    ["x" * 5000], ["a\nb\x1b[31m"], ["diagnose", "a\nb\x1b[31m"], ["report", "x" * 5000],
    ["report", "--format", "a\x1b]0;t\x07\nb", "x"], ["workloads", "a\nb"],
    ["record", "--", "/" + "x" * 5000],
    ["record", "--", "no\nsuch\x1b[2J"], ["record", "-o", "y" * 300, "--", "true"],
    ["record", "-o", "y" * 5000, "--", "true"], ["record", "-o", "no\n/x\x1b[1m", "--", "true"],
    ["record", "--rate", "x\ny", "--", "true"], ["record", "--intervene", "[" * 100_000, "--", "true"],
    ["record", "--workload", "input_starved", "--set", "work\ners=\x1b]0;x\x07"],
])
def test_hostile_names_make_one_plain_line(argv, capsys):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("stepscope: ") and err.count("\n") == 1
    assert err.rstrip("\n").isprintable() and len(err) < 1100


def test_streams_that_are_closed_or_full():
    def streams(numbers):
        return lambda: [os.close(number) for number in numbers]

    assert ended("workloads", preexec_fn=streams([1])) == (0, "")
    assert ended("workloads", preexec_fn=streams([0, 1, 2])) == (0, "")
    assert ended("workloads", "nope", preexec_fn=streams([0, 1, 2]))[0] == 2
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-P", str(entry_point()), "workloads"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    text = "stepscope: standard output cannot be written: No space left on device"
    assert done.returncode == 2 and done.stderr.decode().startswith(text)
    assert done.stderr.count(b"\n") == 1
