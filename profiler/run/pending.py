"""What waits to be written to a run file, and what is left out while it cannot be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from profiler.run.files import to_json
from profiler.run.rows import PUT_ATTACHMENT, PUT_EVENT, PUT_META

MOST_WAITING = 10_000  # rows kept for a disk that has room again

Row = tuple[str, tuple[Any, ...]]


@dataclass(slots=True)
class Pending:
    """What was put in since the last commit."""

    rows: list[Row] = field(default_factory=list)
    samples: list[tuple[int, int, float]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)  # tracks that get no samples after these
    described: bool = False  # meta, device, process or track changed

    def replace_meta(self, key: str) -> None:
        """Forget an older value of a fact: only the newest is written in the end."""
        self.rows = [row for row in self.rows if row[0] is not PUT_META or row[1][0] != key]

    def drop_attachments(self, why: str) -> None:
        """Events in the place of attachments."""
        self.rows = [lost(row, why) if row[0] is PUT_ATTACHMENT else row for row in self.rows]


@dataclass(slots=True)
class Gap:
    """Samples that came while the run file could not be written."""

    samples: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, t_ns: int) -> None:
        self.first_ns = min(self.first_ns, t_ns) if self.samples else t_ns
        self.last_ns = max(self.last_ns, t_ns)
        self.samples += 1

    def event(self, why: str) -> Row:
        seconds = (self.last_ns - self.first_ns) / 1e9
        text = f"Nothing could be written for {seconds:.1f} s, {self.samples} samples are missing: {why}"
        data = {"samples": self.samples, "t0_ns": self.first_ns, "t1_ns": self.last_ns}
        return PUT_EVENT, (self.last_ns, "recording_gap", "warning", text, None, None, to_json(data))


def lost(row: Row, why: str) -> Row:
    """The event that stands for an attachment which could not be kept."""
    t_ns, _, name, process = row[1][:4]
    text = f"{name} cannot be kept: {why}"
    return PUT_EVENT, (t_ns, "trace_lost", "warning", text, None, process, "{}")
