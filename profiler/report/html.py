"""A report as one HTML file that needs nothing else: styles and pictures are inside."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import ProfilerError, RunError
from profiler.paths import ASSETS
from profiler.report.page import page
from profiler.rules.energy import Price
from profiler.version import version

if TYPE_CHECKING:
    from profiler.run.reader import Run

FOLDER = ASSETS / "report"
ENDING = ".html"


def render(run: Run, price: Price | None = None) -> str:
    """The whole page. ProfilerError when the template engine is not installed."""
    try:
        import jinja2
    except ImportError as error:  # a recorder may run from a checkout without it
        raise ProfilerError(f"a report needs {error.name}, which is not installed",
                            "Run pip install jinja2") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined)
    style = (FOLDER / "report.css").read_text(encoding="utf-8")
    template = environment.get_template("report.html.jinja")
    return template.render(style=style, version=version(), **page(run, price))


def write(run: Run, output: Path, price: Price | None = None) -> Path:
    """Write the report of a run. It appears under its name only when it is whole. RunError when it cannot."""
    text = render(run, price).encode("utf-8", "replace")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
        new = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            new.chmod(0o666 & ~_umask())
            new.replace(output)
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {output}: {error.strerror or error}",
                       "Name another file with -o") from error
    return output


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
