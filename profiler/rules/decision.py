"""What a verdict is, and the thresholds of definitions, section 5, by which every verdict is made."""

from __future__ import annotations

from dataclasses import dataclass

GAIN = 1.05  # a smaller gain names no bottleneck
NEARLY = 0.9  # of the largest gain: named as well
LARGE = 0.15  # share of the step from which a class is named in any case
FULL = 0.85  # share of compute from which a run is compute-bound
SURE = 1.10  # gain from which noise cannot have made the verdict


@dataclass(frozen=True)
class Decision:
    verdict: str
    also: tuple[str, ...] = ()
    confidence: str = "low"
    reason: str = ""
    gain: float = 1.0  # of the ideal without the bottleneck
