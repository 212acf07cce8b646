"""No name of a file is a formula where a table is pasted."""

from __future__ import annotations

import pytest

from profiler.report.spreadsheet import cell


@pytest.mark.parametrize("text", ["=1+1", "=cmd|'/C calc'!A0", "+cmd|'/C calc'!A0", "-2+3+cmd|'/C calc'!A0",
                                  "@SUM(1+1)", '=HYPERLINK("http://evil.example","all is well")', "\t=1"])
def test_a_formula_is_a_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1.5", "+0.53\u00a0ms", "-3 %", "-", "1+1", "aten::mm", "\u22121.2", "",
                                  "a=b"])
def test_what_is_none_stays(text: str) -> None:
    assert cell(text) == text
