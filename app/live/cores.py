"""The row of the CPU's cores: curves for a few, a heat strip for more. On the worker."""

from __future__ import annotations

import numpy as np

from app.live.series import nice, to_curve
from app.live.state import Live, Where
from app.widgets.chart_data import CurveData, Floats, Folded, HeatData, Line, RowData
from profiler.model import Track
from profiler.run.reader import Run
from profiler.units import format_number, format_share

CURVES = 3  # cores; more become a heat strip
CELL_PX = 8
BUSY = 0.5  # share from which a core counts as busy
_COLOURS = (("m1", False), ("m3", True), ("m2", False))


def cores_row(run: Run, live: Live, where: Where) -> RowData:
    tracks = sorted(run.find("host.core"), key=lambda track: track.index or 0)
    if not tracks:
        return Folded("No values yet" if run.state == "recording" else "This run has no CPU values")
    if len(tracks) <= CURVES:
        return _curves(run, live, where, tracks)
    return _heat(run, live, where, tracks)


def _curves(run: Run, live: Live, where: Where, tracks: list[Track]) -> CurveData:
    t0, t1 = _range(run, where, 1.0)
    lines = []
    for track, (colour, dashed) in zip(tracks, _COLOURS, strict=False):
        series = run.series(track.id, t0, t1, points=int(where.width))
        x, y = to_curve(series, run.start_ns, live.intervals.usual(run, track.id), 100)
        latest = run.latest(track.id)
        value = None if latest is None else latest[1]
        lines.append(Line(f"core {track.index}", x, y, colour, dashed, None,
                          None if value is None else 100 * value, format_share(value)))
    plural = "core" if len(tracks) == 1 else "cores"
    return CurveData(tuple(lines), notes=(f"% busy, {len(tracks)} {plural}",), top=100)


def _heat(run: Run, live: Live, where: Where, tracks: list[Track]) -> HeatData:
    usual = live.intervals.usual(run, tracks[0].id) or 5e8
    # A cell is never narrower than a sample: else it would be empty every other time.
    bin_s = nice(max(CELL_PX * (where.x1 - where.x0) / max(where.width, 1.0), usual / 1e9))
    first, last = np.floor(where.x0 / bin_s), np.ceil(where.x1 / bin_s)
    edges = np.arange(first, last + 1) * bin_s
    t0, t1 = _range(run, where, 2 * bin_s)
    points = int(where.width)
    shares = np.stack([_row(run, track, edges, t0, t1, points) for track in tracks])
    newest = [latest[1] for track in tracks if (latest := run.latest(track.id))]
    labels = [("", f"{sum(v >= BUSY for v in newest)} of {len(tracks)}", "busy")]
    target = (("target.cpu", "target", 2, "cores"), ("target.workers", "workers", 0, ""))
    for metric, word, decimals, unit in target:
        values = [latest[1] for track in run.find(metric) if (latest := run.latest(track.id))]
        if values:
            labels.append((word, format_number(sum(values), decimals), unit))
    return HeatData(edges, shares, "0", str(len(tracks) - 1), tuple(labels),
                    (f"busy per core, {len(tracks)} rows",))


def _row(run: Run, track: Track, edges: Floats, t0: int, t1: int, points: int) -> Floats:
    """Means per bin. An empty bin between two with values takes the one before: a slow sample covers it."""
    series = run.series(track.id, t0, t1, points=points)
    x = (series.t_ns - run.start_ns) / 1e9
    middle = (series.low + series.high) / 2
    bins = np.searchsorted(edges, x, side="right") - 1
    inside = (bins >= 0) & (bins < len(edges) - 1)
    sums = np.bincount(bins[inside], middle[inside], len(edges) - 1)
    counts = np.bincount(bins[inside], minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):
        result = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    for i in np.flatnonzero(np.isnan(result[1:-1])) + 1:
        if not np.isnan(result[i - 1]) and not np.isnan(result[i + 1]):
            result[i] = result[i - 1]
    return result


def _range(run: Run, where: Where, margin: float) -> tuple[int, int]:
    return run.start_ns + int((where.x0 - margin) * 1e9), run.start_ns + int((where.x1 + margin) * 1e9)
