"""What went wrong in the loops of a run, of which its events tell: it stands before any figure."""

from __future__ import annotations

from collections.abc import Iterable

from profiler.model import Event

KINDS = ("worker_died", "trace_still", "duplicated_data", "recording_gap", "suspended")
MOST = 5


def troubles(events: Iterable[Event]) -> list[str]:
    """Sentences: dead workers, data given twice, windows without a step, loops that stand still, and times
    of which nothing is known."""
    events = list(events)
    found = [event.text for event in events if event.kind in KINDS]
    return [*found[:MOST], *(event.text for event in standing(events)[:MOST])]


def standing(events: Iterable[Event]) -> list[Event]:
    """The newest "no_step" of each process that has made no step since, inside a step as far as is known."""
    last: dict[int | None, Event] = {}
    for event in events:
        if event.kind == "no_step":
            last[event.process] = event
        elif event.kind == "steps_again":
            last.pop(event.process, None)
    return [event for event in last.values() if event.severity != "info"]
