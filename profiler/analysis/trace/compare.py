"""Two traces side by side, step for step: what grew, what shrank, what is new, what has vanished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from profiler.trace.model import Ints

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Amount:
    """How often and how long, over all counted steps. Times in ns."""

    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """One thing in both traces. `a` or `b` None: it is not there, so that it is new or has vanished.

    Per step, or absolute where one of the traces has no steps.
    """

    key: Key
    a: Amount | None
    b: Amount | None
    steps_a: int | None
    steps_b: int | None

    @property
    def per_step(self) -> bool:
        return bool(self.steps_a and self.steps_b)

    def mean_ns(self, side: str) -> float:
        """Time per step of side "a" or "b", 0 where it is not there; in all where there are no steps."""
        amount, steps = (self.a, self.steps_a) if side == "a" else (self.b, self.steps_b)
        return 0.0 if amount is None else amount.total_ns / (steps if self.per_step and steps else 1)

    def mean_count(self, side: str) -> float:
        """Count per step, or in all."""
        amount, steps = (self.a, self.steps_a) if side == "a" else (self.b, self.steps_b)
        return 0.0 if amount is None else amount.count / (steps if self.per_step and steps else 1)

    @property
    def delta_ns(self) -> float:
        """By how much `b` takes longer."""
        return self.mean_ns("b") - self.mean_ns("a")


def changes(a: Iterable[tuple[Key, int, int]], b: Iterable[tuple[Key, int, int]],
            steps_a: int | None, steps_b: int | None) -> tuple[Change, ...]:
    """Things with (key, count, total ns) of two traces joined by key, the largest change of time first.

    `steps_a`, `steps_b`: over how many steps the totals are; None without steps.
    """
    one, two = _amounts(a), _amounts(b)
    found = [Change(key, one.get(key), two.get(key), steps_a, steps_b) for key in {**one, **two}]
    return tuple(sorted(found, key=lambda c: (-abs(c.delta_ns), c.key)))


def _amounts(rows: Iterable[tuple[Key, int, int]]) -> Mapping[Key, Amount]:
    found: dict[Key, Amount] = {}
    for key, count, total in rows:
        before = found.get(key, Amount(0, 0))
        found[key] = Amount(before.count + count, before.total_ns + total)
    return found


def aligned(numbers_a: Ints, numbers_b: Ints) -> tuple[tuple[int | None, int | None], ...]:
    """Rows of the steps to look at together: by number where the traces share one, else by their order."""
    one, two = numbers_a.tolist(), numbers_b.tolist()
    if set(one) & set(two):
        at = {number: k for k, number in enumerate(two)}
        pairs: list[tuple[int | None, int | None]] = [(k, at.get(number)) for k, number in enumerate(one)]
        return (*pairs, *((None, k) for k, number in enumerate(two) if number not in set(one)))
    longest = max(len(one), len(two))
    return tuple((k if k < len(one) else None, k if k < len(two) else None) for k in range(longest))
