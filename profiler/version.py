"""Our version: from the installed package, else from the checkout."""

from __future__ import annotations

from functools import cache

from profiler.paths import HOME


def version() -> str:
    """The version, e.g. "0.1.0"; "unknown" for a copy of the folders without either."""
    checkout = HOME / "pyproject.toml"
    try:
        if checkout.exists():  # an editable install's metadata may be older than the code
            import tomllib

            return str(tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]["version"])
        from importlib import metadata  # brings the parser of mails with it

        return metadata.version("stepscope")
    except (ImportError, OSError, KeyError, ValueError):
        return "unknown"


@cache
def code_digest(*folders: str) -> str:
    """A digest of our version and of all code in these folders, named from the one that holds `profiler`."""
    import hashlib  # most commands need none, and it loads a library

    digest = hashlib.sha256(version().encode())
    for folder in folders:
        for file in sorted((HOME / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
