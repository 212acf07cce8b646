"""The one tree of errors that a user sees: what happened, what to do, how the process ends."""

from __future__ import annotations

import re
import unicodedata


class ProfilerError(Exception):
    """An error told to the user in one line.

    `message` says what happened and to what, `hint` what to do about it.
    `exit_code` is the status of the command that ends with it.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class UsageError(ProfilerError):
    """Arguments that cannot be used: an unknown name, a bad value, a missing file."""


class TargetError(ProfilerError):
    """The user's command cannot be started or attached to."""


class DeviceError(ProfilerError):
    """A device, or the library that tells about it, does not answer."""


class RunError(ProfilerError):
    """A run file that cannot be written or read."""


class TakenRunError(RunError):
    """There is a file of that name already."""


class NotARunError(RunError):
    """The file is no run file."""


class RunVersionError(RunError):
    """The run file has another version of the schema."""


class DamagedRunError(RunError):
    """The run file is damaged."""


class TraceError(ProfilerError):
    """A profiler trace that cannot be read."""


class Cancelled(ProfilerError):
    """The user stopped a long piece of work; what was begun is thrown away."""

    exit_code = 130


class RemoteError(ProfilerError):
    """A remote host that cannot be reached or used."""


def one_line(text: str) -> str:
    """`text` fit for a line on a terminal: names may hold line ends and escape sequences, or be endless."""
    if len(text) > 2 * _LINE:  # no more than this of it is shown, and a letter is shown as one or more
        text = text[:_LINE] + text[-_LINE:]
    shown = harmless(text)
    return shown if len(shown) <= _LINE else f"{shown[:600]} ... {shown[-300:]}"


def harmless(text: str, keep: str = "") -> str:
    """`text` of which a terminal shows every character and obeys none; those in `keep` stay as they are.

    Control characters, marks that turn the direction of writing and characters without width appear as
    escapes; so do combining marks beyond what any script puts on one letter, which climb over other lines.
    """
    return _BEYOND_ASCII.sub(lambda found: _escaped(found[0], keep), text)


def _escaped(text: str, keep: str) -> str:
    shown, marks = [], 0
    for c in text:
        marks = marks + 1 if unicodedata.category(c) in ("Mn", "Me") else 0
        good = (c.isprintable() and marks <= _MARKS) or c in _OURS or c in keep
        shown.append(c if good else c.encode("unicode_escape").decode())
    return "".join(shown)


_BEYOND_ASCII = re.compile(r"[^ -~]+")
_LINE = 1000  # letters
_MARKS = 4
_OURS = "\u00a0"  # not printable for Python, and in our own texts
