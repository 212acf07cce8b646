"""What the Diagnose screen shows, as plain values. Free of Qt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.selection import NOWHERE, Place


@dataclass(frozen=True)
class Line:
    """One row of a list: what, its value with unit, and where it comes from or what is left to say."""

    text: str
    value: str = ""
    note: str = ""


@dataclass(frozen=True)
class PartRow:
    """A class of the partition, or a stage. `share` in [0, 1]; the sum row has no stage."""

    name: str
    stage: str
    ms: str
    share: float | None
    percent: str


@dataclass(frozen=True)
class Code:
    """Where in the user's code. `lines` are (number, text) around it; none where the file is not there."""

    site: str
    path: Path | None = None
    line: int = 0
    lines: tuple[tuple[int, str], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Ratios:
    """Prediction and measurement on one axis, as ratios; None where there is none.

    `predicted`: (low, middle, high); `measured`: (low, median, high). `tone`: ok, err or t2.
    """

    predicted: tuple[float, float, float] | None = None
    predicted_text: str = ""
    predicted_ms: str = ""
    model: str = ""
    measured: tuple[float, float, float] | None = None
    measured_text: str = ""
    measured_ms: str = ""
    pairs: tuple[float, ...] = ()
    tone: str = "t2"
    ideal: float | None = None
    badge: tuple[str, str] | None = None  # word, kind of chip
    meaning: str = ""  # of the badge
    outcome: str = ""  # in words, where there is no ratio
    rates: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FindingData:
    """One finding. `key` names it for verify: its rule, or its number where rules repeat."""

    key: str
    rule: str
    rank: int
    title: str
    heading: str
    stage: str
    cost: str  # 36.2 ms per step, major
    remedy: str  # workers 0 -> 8
    advice: str
    prediction: str
    ratios: Ratios
    testable: bool
    why_not: str
    evidence: tuple[Line, ...] = ()
    counter: tuple[Line, ...] = ()
    code: Code | None = None
    place: Place = NOWHERE

    @property
    def tested(self) -> bool:
        return self.ratios.measured is not None or bool(self.ratios.outcome)


@dataclass(frozen=True)
class Span:
    """A piece of a lane, in ms from the step's start. `stage` "" is work of another step."""

    stage: str
    t0: float
    t1: float
    text: str


@dataclass(frozen=True)
class Lane:
    name: str
    spans: tuple[Span, ...]
    note: str = ""  # under the name


@dataclass(frozen=True)
class StepData:
    """One step in lanes on one axis of ms. `idle`: a stretch without work on the device, and what it is."""

    lanes: tuple[Lane, ...] = ()
    end: float = 0.0  # of the step
    note: str = ""
    idle: tuple[float, float, str] | None = None


@dataclass(frozen=True)
class CeilingRow:
    """A stage alone: ms per step (median, low, high)."""

    title: str
    stage: str
    ms: float
    low: float
    high: float
    text: str
    rate: str


@dataclass(frozen=True)
class CeilingsData:
    rows: tuple[CeilingRow, ...] = ()
    note: str = ""
    leaning: str = ""
    run_ms: float | None = None
    run_text: str = ""
    verified_ms: float | None = None
    verified_text: str = ""
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class WhatIfRow:
    title: str
    ms: str
    speedup: str
    interval: str
    note: str = ""


@dataclass(frozen=True)
class DiagnoseData:
    """All of the screen. `unanalysed`: the run holds traces that this version has not analysed yet."""

    word: str
    title: str
    stage: str = ""
    also: str = ""
    confidence: str = ""
    headline: str = ""
    reason: str = ""
    facts: str = ""  # 2 000 steps, 1 min 48 s
    findings: tuple[FindingData, ...] = ()
    parts: tuple[PartRow, ...] = ()
    parts_title: str = ""
    parts_note: str = ""
    parts_of: str = ""  # the device
    ruled_out: tuple[Line, ...] = ()
    lacks: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()
    step: StepData = StepData()
    ceilings: CeilingsData | None = None
    what_if: tuple[WhatIfRow, ...] = ()
    what_if_lacks: str = ""
    replay: str = ""
    has_trace: bool = False
    unanalysed: bool = False
    recording: bool = False
    repeatable: bool = False  # its program can be started again
    program: str = ""
