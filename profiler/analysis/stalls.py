"""Steps that take far longer than the others: single ones, and those that come again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.series import BoolArray, FloatArray, IntArray

STALL = 3.0  # times the median
RARE = 0.05  # share of the steps; more of them are the loop's own rhythm
COST = 0.05  # share of the time that recurring stalls take above the median, from which they count
NEAR = 0.1  # of the usual distance: a stall at about this distance recurs
MOSTLY = 0.8  # of the distances are usual ones where stalls recur


@dataclass(frozen=True)
class Stalls:
    """`left_out` and `recurring` pick steps; no step is in both.

    Left out of means are stalls in at most 5 % of the steps, unless they recur: every so many
    steps (`every`), as checkpoints do, and for more than 5 % of the time.
    """

    left_out: BoolArray
    recurring: BoolArray
    every: float | None = None


def find_stalls(wall: FloatArray, index: IntArray) -> Stalls:
    """Of steps that take `wall` ns and are the loop's number `index`, in order."""
    none = np.zeros(len(wall), bool)
    median = float(np.median(wall)) if len(wall) else 0.0
    long = wall > STALL * median
    every = rhythm(index[long])
    if every is not None and float((wall[long] - median).sum()) > COST * float(wall.sum()):
        return Stalls(none, long, every)
    return Stalls(long if long.sum() <= RARE * len(wall) else none, none)


def rhythm(index: IntArray) -> float | None:
    """The usual distance between these numbers where nearly all are about that far apart; else None.

    At least three numbers are needed. Of three at random one in ten look like that, of four one in 200.
    """
    gaps = np.diff(index)
    if len(gaps) < 2:
        return None
    usual = float(np.median(gaps))
    near = np.abs(gaps - usual) <= NEAR * usual
    return usual if usual > 1 and near.mean() >= MOSTLY else None
