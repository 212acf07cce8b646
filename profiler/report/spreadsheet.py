"""Texts for the cells of a spreadsheet, pasted or in a file."""

from __future__ import annotations

import re

_FIGURE = re.compile(r"[+-][\w.,%/ \u00a0\u00b5\u2026]*")


def cell(text: str) -> str:
    """`text` as a text: one that begins like a formula would be run, and could start programs."""
    if text[:1] in ("=", "@", "\t", "\r") or (text[:1] in ("+", "-") and not _FIGURE.fullmatch(text)):
        return f"'{text}"
    return text
