"""Where each lane stands: order, pinned ones first, folded and hidden ones, heights. Free of Qt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.timeline.recorded import Counters
from app.timeline.spans import Lane, Model

MOST_ROWS = 4  # of a lane that is open but not whole
ROW, DEEP, STREAM, FOLDED, COUNTER, PAD = 18, 15, 30, 10, 44, 6  # px
ORDER = ("steps", "stages", "host", "python", "stream", "counter")
GROUPS = {
    "steps": "Steps",
    "stages": "Stages",
    "host": "Host threads",
    "python": "Python frames",
    "stream": "GPU streams",
    "counter": "Counters",
}
CLOSED, OPEN, WHOLE = range(3)


@dataclass(frozen=True)
class Strip(Lane):
    """A lane or a counter, before it has a place. A counter has no rows; `index` is its number."""

    first: int = 0
    rows: int = 0
    index: int = -1  # of Model.counters; -1: it is in the run


@dataclass(frozen=True)
class Placed:
    """`y` from the top of all lanes, px. `shown`: rows that are drawn, each as high as `heights` says."""

    strip: Strip
    y: int
    height: int
    state: int
    heights: tuple[int, ...] = ()
    pinned: bool = False

    @property
    def can_unfold(self) -> bool:
        """Whether there are rows beyond those that are drawn."""
        return self.strip.rows > max(len(self.heights), 1)

    def rows(self) -> Iterable[tuple[int, int, int]]:
        """(row of the model, y, height) of every row that is drawn."""
        y = self.y + PAD // 2 + 1
        for k, height in enumerate(self.heights):
            yield self.strip.first + k, y, height - 1
            y += height


@dataclass
class Arrangement:
    """What the user has done to the lanes."""

    state: dict[str, int] = field(default_factory=dict)
    pinned: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)

    def toggle(self, placed: Placed) -> None:
        """Folded, open, whole where there is more, folded again."""
        following = {CLOSED: OPEN, OPEN: WHOLE if placed.can_unfold else CLOSED, WHOLE: CLOSED}
        self.state[placed.strip.key] = following[placed.state]

    def pin(self, key: str) -> None:
        if key in self.pinned:
            self.pinned.remove(key)
        else:
            self.pinned.append(key)


def strips(model: Model, counters: Counters) -> list[Strip]:
    """Everything that can be shown, in its own order: by process, then by kind."""
    lanes = [Strip(**vars(lane)) for lane in model.lanes]
    lanes += [
        Strip(counter.key, counter.title, counter.note, "counter", process=counter.process, index=k)
        for k, counter in enumerate(model.counters)
    ]
    lanes.sort(key=lambda s: (s.process, ORDER.index(s.kind)))  # stable: threads stay in their order
    recorded = [Strip(row.key, row.title, row.note, "counter") for row in counters.rows]
    return [*lanes, *recorded]


def usual_state(strip: Strip) -> int:
    """Open are the lanes that a reader asks for first."""
    if strip.kind == "python":
        return CLOSED
    if strip.kind == "host":
        return OPEN if strip.title.startswith(("CPU main", "autograd")) else CLOSED
    return OPEN


def arrange(found: Sequence[Strip], arrangement: Arrangement) -> tuple[list[Placed], int]:
    """Every lane that is not hidden, pinned ones first; and the height of the pinned ones together, px."""
    shown = {strip.key: strip for strip in found if strip.key not in arrangement.hidden}
    pinned = [shown[key] for key in arrangement.pinned if key in shown]
    order = pinned + [strip for strip in shown.values() if strip not in pinned]
    placed, y, top = [], 0, 0
    for k, strip in enumerate(order):
        state = arrangement.state.get(strip.key, usual_state(strip))
        heights = _heights(strip, state)
        height = (sum(heights) + PAD) if strip.kind != "counter" else (COUNTER if state else FOLDED + PAD + 6)
        height = max(height, FOLDED + PAD + 6)
        placed.append(Placed(strip, y, height, state, heights, k < len(pinned)))
        y += height
        if k < len(pinned):
            top = y
    return placed, top


def _heights(strip: Strip, state: int) -> tuple[int, ...]:
    if strip.kind == "counter":
        return ()
    if state == CLOSED:
        return (FOLDED + 4,)
    shown = strip.rows if state == WHOLE else min(strip.rows, MOST_ROWS)
    first = {"stream": STREAM, "steps": ROW + 2}.get(strip.kind, ROW)
    return (first, *(DEEP for _ in range(shown - 1)))


def at(placed: Sequence[Placed], y: float) -> Placed | None:
    """The lane at a height; None below the last."""
    return next((p for p in placed if p.y <= y < p.y + p.height), None)


def row_at(lane: Placed, y: float) -> int:
    """The row of the model at a height of a lane; -1 where there is none."""
    for row, top, height in lane.rows():
        if top - 1 <= y <= top + height:
            return row
    return -1


def ticks(t0: float, t1: float, width: float, apart: float = 90.0) -> tuple[list[float], float]:
    """Times of round value between two, ns, at least `apart` px from each other; and their distance."""
    least = max((t1 - t0) * apart / max(width, 1.0), 1.0)
    step = 1.0
    while step < least:
        for factor in (2, 2.5, 2):
            if step >= least:
                break
            step *= factor
    first = -(-t0 // step)
    found, t = [], first * step
    while t <= t1:
        found.append(t)
        t += step
    return found, step
