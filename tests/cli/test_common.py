"""Strict JSON, tables and the progress bar."""

import io
import json
import os
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from profiler.cli._common import Progress, plain, print_json, print_table
from profiler.cli._streams import tell


@dataclass
class Thing:
    value: float
    parts: tuple


def test_json_is_strict_and_alone(capsys):
    print_json({"a": float("nan"), 1: np.float64(2.5), "b": np.array([1, 2]), "c": Thing(float("inf"), (1,)),
                "d": np.int64(3), "e": True, "f": np.nan})
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out, parse_constant=lambda name: 1 / 0) == {
        "a": None, "1": 2.5, "b": [1, 2], "c": {"value": None, "parts": [1]}, "d": 3, "e": True, "f": None}
    assert plain({"x": {1}}) == {"x": [1]}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_json_is_utf_8_whatever_the_stream(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, errors="replace"))
    print_json({"name": "5\u00a0ms \u65e5"})
    sys.stdout.flush()
    assert json.loads(raw.getvalue().decode()) == {"name": "5\u00a0ms \u65e5"}


def test_a_table_lines_up(capsys):
    print_table([["data wait", "36.2"], ["h2d", "4.1"]], ["stage", "ms"], right=[1])
    assert capsys.readouterr().out == "stage        ms\ndata wait  36.2\nh2d         4.1\n"
    print_table([])
    assert capsys.readouterr().out == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_for_terminals_only():
    quiet, loud = io.StringIO(), Terminal()
    for stream in (quiet, loud):
        with Progress("Verifying", 4, stream) as bar:
            bar.update(1, "pair 1")
            bar.update(9)
    assert quiet.getvalue() == ""
    assert "25 % pair 1" in loud.getvalue() and "100 %" in loud.getvalue()
    assert loud.getvalue().endswith("\r") and "\n" not in loud.getvalue()


class Closed(Terminal):
    def write(self, text):
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_closed_ends_nothing(monkeypatch):
    with Progress("Verifying", 4, Closed()) as bar:
        bar.update(1, "pair 1")
    monkeypatch.setattr(sys, "stderr", Closed())
    tell("pair 1")


def test_a_bar_takes_one_line_of_the_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("os.get_terminal_size", lambda number: os.terminal_size((30, 24)))
    monkeypatch.setattr(screen, "fileno", lambda: 2)
    with Progress("Sweep", 4, screen) as bar:
        bar.update(1, "name=\x1b[2J\n" + "x" * 200)
    assert [len(line) for line in screen.getvalue().split("\r")] == [0, 29, 29, 0]
    assert "\x1b" not in screen.getvalue() and "\n" not in screen.getvalue()
