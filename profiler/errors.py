"""The one tree of errors that a user sees: what happened, what to do, how the process ends."""

from __future__ import annotations


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
    keep = "\u00a0"  # not printable for Python, and in our own texts
    shown = "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= 1000 else f"{shown[:600]} ... {shown[-300:]}"
