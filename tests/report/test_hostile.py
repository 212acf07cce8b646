"""A run whose every name is HTML, in a report: text, and no page of ours runs or loads anything."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from profiler.report import html
from profiler.run.reader import Run
from tests.cli.hostile import hostile_run
from tests.run.fuzz import ALLOWED

ADDRESSES = ("href", "src", "xlink:href", "srcset", "action")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.texts: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told.get("content") or ""
        self.wrong += [tag] if tag not in ALLOWED else []
        for name, value in attrs:
            loads = name in ADDRESSES and not (value or "").startswith("#")
            styled = name == "style" and ("url" in (value or "") or "expression" in (value or ""))
            if loads or styled or name.startswith("on"):
                self.wrong.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _read(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    return page


def test_names_are_text(tmp_path: Path) -> None:
    with Run.open(hostile_run(tmp_path / "a.stepscope")) as run:
        page = _read(html.render(run))
    assert page.wrong == []
    assert sum("<img src=x onerror=alert(1)>" in text for text in page.texts) > 3
    assert "default-src 'none'" in page.policy and "script" not in page.policy


@pytest.mark.parametrize("text", ["<script>1</script>", "<img src=x onerror=1>", "<a href='http://x'>",
                                  "<p onclick=1>", "<p style='background: url(x)'>", "<iframe>"])
def test_each_way_would_be_seen(text: str) -> None:
    assert _read(text).wrong
