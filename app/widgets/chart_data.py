"""What charts draw. Times are seconds since the run's start, values are in the chart's unit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EMPTY: Floats = np.empty(0)


@dataclass(frozen=True, eq=False)
class Line:
    """A curve. NaN breaks it. `upper` makes it a band between `y` and `upper`."""

    name: str
    x: Floats
    y: Floats
    colour: str  # a token: m1, m2, m3
    dashed: bool = False
    upper: Floats | None = None
    newest: float | None = None  # where the name stands
    text: str = ""  # the newest value, formatted


@dataclass(frozen=True)
class Stretch:
    """An interval on the time axis with its reason: a gap, or a throttled time."""

    x0: float
    x1: float
    text: str


@dataclass(frozen=True)
class Note:
    """A remark at a point of a chart."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, eq=False)
class CurveData:
    """A chart with curves. `top` bounds the axis (100 for shares); `zero` False lets it start higher."""

    lines: tuple[Line, ...] = ()
    gaps: tuple[Stretch, ...] = ()
    throttled: tuple[Stretch, ...] = ()
    notes: tuple[str, ...] = ()  # unit and remarks in the left gutter
    top: float | None = None
    zero: bool = True


@dataclass(frozen=True, eq=False)
class StepBars:
    """Stacked step times: one bar for each bin, its stages those of the median step inside.

    `heights` is float64[stages, bars] in ms in the order of `stages`; `slowest` float64[bars].
    """

    left: Floats = field(default_factory=lambda: EMPTY)
    right: Floats = field(default_factory=lambda: EMPTY)
    heights: Floats = field(default_factory=lambda: np.empty((0, 0)))
    slowest: Floats = field(default_factory=lambda: EMPTY)
    stages: tuple[str, ...] = ()
    bin_seconds: float = 0.0  # 0: every bar is one step
    median: str = ""  # of all steady steps, formatted
    stage_texts: tuple[str, ...] = ()  # newest stage times, formatted
    remarks: tuple[Note, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class HeatData:
    """Shares in [0, 1] as float64[rows, bins]; NaN where there is no value. `edges` has bins + 1 items."""

    edges: Floats = field(default_factory=lambda: EMPTY)
    shares: Floats = field(default_factory=lambda: np.empty((0, 0)))
    first: str = ""
    last: str = ""
    labels: tuple[tuple[str, str, str], ...] = ()  # at the right: (words, value, words)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folded:
    """A row without values, in one line: why."""

    reason: str


RowData = CurveData | StepBars | HeatData | Folded


@dataclass(frozen=True, eq=False)
class Row:
    """One chart of a stack. `height` is its share of the room, in pixels of the design."""

    key: str
    title: str
    height: int
    data: RowData
    throttle_hatch: bool = False  # the chart that names the reasons of throttling
