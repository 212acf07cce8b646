"""What is lost on the way, counted as it happens."""

from __future__ import annotations

from dataclasses import dataclass, field

from profiler.importers.kineto.repair import Repaired
from profiler.trace.model import Losses

_EXAMPLES = 5


@dataclass
class Tally:
    """The fields are those of `Losses`; `notes` are sentences for the user."""

    events: int = 0
    invalid: int = 0
    unfinished: int = 0
    repaired: int = 0
    unreadable: int = 0
    missing_values: int = 0
    truncated_at: int | None = None
    examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lose(self, name: object, reason: str) -> None:
        """One event whose time cannot be used."""
        self.invalid += 1
        self.example(name, reason)

    def example(self, name: object, reason: str) -> None:
        if len(self.examples) < _EXAMPLES:
            text = name if isinstance(name, str) and name else "without a name"
            self.examples.append(f"{text[:80]}: {reason}")

    def mended(self, one: Repaired) -> None:
        self.repaired += one.repaired
        self.missing_values += one.missing

    def add(self, other: Tally) -> None:
        """What another part of the same file lost."""
        self.events += other.events
        self.invalid += other.invalid
        self.unfinished += other.unfinished
        self.repaired += other.repaired
        self.unreadable += other.unreadable
        self.missing_values += other.missing_values
        self.examples = (self.examples + other.examples)[:_EXAMPLES]
        self.notes += other.notes
        self.truncated_at = other.truncated_at if self.truncated_at is None else self.truncated_at

    def losses(self) -> Losses:
        return Losses(self.events, self.invalid, self.unfinished, self.repaired, self.unreadable,
                      self.missing_values, self.truncated_at, tuple(self.examples))

    def sentences(self) -> tuple[str, ...]:
        """What a user should know, one sentence each."""
        said = list(self.notes)
        if self.truncated_at is not None:
            said.append(f"The file ends early: it is readable up to byte {self.truncated_at} of its text.")
        for count, what in (
            (self.invalid, "{of} events left out: no usable time or duration."),
            (self.unfinished, "{of} events left out: begun and never ended."),
            (self.unreadable, "{of} events left out: they could not be read."),
            (self.repaired, "Texts that were no valid JSON and were repaired (names may differ): {n}."),
            (self.missing_values, "Values that were no numbers or beyond all bounds, taken as missing: {n}."),
        ):
            if count:
                said.append(what.format(of=f"{count} of {self.events}", n=count))
        if self.examples:
            said.append("For example " + "; ".join(self.examples) + ".")
        return tuple(said)
