"""The timeline's parts without a window: what is drawn, hit, found, laid out and summed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.timeline import flame, layout, lod, raster, spans
from app.timeline.build import depths
from app.timeline.flame import Flame
from app.timeline.layout import CLOSED, OPEN, WHOLE, Arrangement
from app.timeline.recorded import Counters, joined
from app.timeline.scene import short_name
from app.timeline.spans import CODE, Builder, Model, Row

few = settings(max_examples=150, deadline=None)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Disjoint spans with gaps of any size, zero included."""
    one = st.tuples(st.integers(0, 60), st.integers(1, 80), st.integers(0, 3))
    lengths = draw(st.lists(one, max_size=40))
    at, start, end, colour = draw(st.integers(-50, 50)), [], [], []
    for gap, long, code in lengths:
        start.append(at + gap)
        at += gap + long
        end.append(at)
        colour.append(code)
    return Row(np.array(start, np.int64), np.array(end, np.int64), np.array(colour, np.uint8))


@st.composite
def grids(draw: st.DrawFn) -> np.ndarray:
    return lod.edges(draw(st.integers(-100, 400)), draw(st.sampled_from([1.0, 1.7, 3.0, 12.5, 90.0])),
                     draw(st.integers(1, 60)))


@few
@given(rows(), grids())
def test_columns_have_a_colour_exactly_where_spans_are(row: Row, edge: np.ndarray) -> None:
    found = lod.columns(row, edge)
    for k, (a, b) in enumerate(zip(edge[:-1].tolist(), edge[1:].tolist())):
        cover = np.zeros(4, np.int64)
        for s, e, c in zip(row.start.tolist(), row.end.tolist(), row.palette[row.code].tolist()):
            cover[c] += max(0, min(e, b) - max(s, a))
        assert (found.colour[k] >= 0) == bool(cover.any())
        if cover.any():
            assert cover[found.colour[k]] == cover.max()  # the one that fills most


@few
@given(rows(), grids(), st.sampled_from([1.0, 2.0]))
def test_boxes_are_the_spans_that_are_wide(row: Row, edge: np.ndarray, scale: float) -> None:
    found = lod.columns(row, edge, scale)
    boxes = {int(place): (int(a), int(b)) for place, a, b in found.boxes}
    assert len(boxes) == len(found.boxes)
    for place, (s, e) in enumerate(zip(row.start.tolist(), row.end.tolist())):
        touched = [k for k in range(len(edge) - 1) if s < edge[k + 1] and e > edge[k]]
        whole = s >= edge[0] and e <= edge[-1]
        if whole:
            assert (place in boxes) == (len(touched) >= lod.EDGED * scale)
        if place in boxes and touched:
            a, b = boxes[place]
            assert max(a, 0) == touched[0] and min(b, len(edge) - 2) == touched[-1]
            assert found.edged[touched].all()


@few
@given(rows(), st.integers(-60, 300), st.integers(0, 12))
def test_a_hit_is_what_brute_force_finds(row: Row, t: int, reach: int) -> None:
    spans_ = list(zip(row.start.tolist(), row.end.tolist()))
    inside = [k for k, (s, e) in enumerate(spans_) if s <= t < e]
    assert row.at(t) == (inside[0] if inside else -1)
    away = [max(s - t, t - e, 0) if not s <= t < e else -1 for s, e in spans_]
    best = min(away, default=reach + 1)
    found = row.near(t, reach)
    assert (found >= 0) == (best <= reach)
    if found >= 0:
        assert away[found] == best


@few
@given(rows(), grids())
def test_marked_columns_are_those_that_are_touched(row: Row, edge: np.ndarray) -> None:
    found = lod.marked(row.start, row.end, edge)
    assert np.array_equal(found, lod.columns(row, edge).colour >= 0)


@few
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)), min_size=1, max_size=40))
def test_spans_of_one_depth_are_disjoint(pairs: list[tuple[int, int]]) -> None:
    start = np.array([a for a, _ in pairs], np.int64)
    end = start + np.array([b for _, b in pairs])
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    depth = depths(start, end, np.zeros(len(start), np.int32))
    for d in range(int(depth.max()) + 1):
        own = depth == d
        assert own.any() and (start[own][1:] >= end[own][:-1]).all()


@few
@given(st.lists(st.tuples(st.integers(1, 50), st.floats(-5, 5) | st.just(float("nan"))), max_size=30),
       grids())
def test_a_line_keeps_its_lowest_and_highest_value(steps: list[tuple[int, float]], edge: np.ndarray) -> None:
    t = np.cumsum([gap for gap, _ in steps]).astype(np.int64)
    v = np.array([value for _, value in steps], np.float64)
    low, high = raster.levels(t, v, edge)
    for k, (a, b) in enumerate(zip(edge[:-1].tolist(), edge[1:].tolist())):
        before = [x for at, x in zip(t.tolist(), v.tolist()) if at < a][-1:]
        known = [x for x in before + [x for at, x in zip(t, v) if a <= at < b] if x == x]
        if len(t) and a < t[-1] and known:
            assert low[k] == min(known) and high[k] == max(known)
        else:
            assert np.isnan(low[k])


def model() -> Model:
    """A thread with three depths, a stream, and steps."""
    builder = Builder()

    def add(key: str, kind: str, told: list[tuple[int, int, str]], **about: int) -> None:
        start, end = (np.array([one[k] for one in told], np.int64) for k in (0, 1))
        names = np.array([builder.code(name) for _, _, name in told], np.int32)
        columns = {"start": start, "end": end, "colour": np.full(len(told), CODE["forward"]), "name": names,
                   "ref": np.arange(len(told))}
        builder.add(key, key, "", kind, columns, depths(start, end, np.zeros(len(told), np.int32)), **about)

    add("CPU main", "host", [(0, 100, "f"), (10, 50, "g"), (20, 30, "h"), (60, 90, "g"), (200, 320, "f"),
                             (210, 300, "g")], process=0)
    add("Stream 7", "stream", [(40, 60, "void gemm<1>(int)"), (70, 130, "Memcpy HtoD")], process=0)
    add("Steps", "steps", [(0, 150, "#1"), (150, 320, "#2")], process=0)
    builder.add_counter(spans.Counter("lag", "Device lag", "ms", 0), np.array([0, 5]), np.array([1.0, 2.0]))
    builder.add_gaps(3, np.array([60]), np.array([70]), np.array([builder.code("data wait")]))
    return builder.model((0, 400), [(0, 320)])


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    one = model()
    spans.save(one, tmp_path / "m.npz")
    two = spans.load(tmp_path / "m.npz")
    assert (two.lanes, two.names, two.counters, two.notes, two.range_ns, two.traced) == (
        one.lanes, one.names, one.counters, one.notes, one.range_ns, one.traced)
    for name in ("start", "end", "colour", "name", "ref", "edges"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert all(np.array_equal(one.gaps[k], two.gaps[k]) for k in one.gaps)
    assert np.array_equal(two.points[0][1], [1.0, 2.0])


def test_a_search_finds_names_in_order_of_time() -> None:
    one = model()
    assert [one.text(k) for k in one.find("G")] == ["g", "void gemm<1>(int)", "g", "g"]
    assert not len(one.find(" ")) and not len(one.find("nothing"))


def test_numbers_of_spans_stay_when_lanes_are_joined() -> None:
    one, two = model(), model()
    both = joined(one, two)
    for k in range(len(one)):
        assert both.text(k) == one.text(k) and both.row_of(k) == one.row_of(k)
        other = len(one) + k
        assert both.text(other) == two.text(k)
        assert both.lane(other).title == two.lane(k).title
    assert both.gaps["row"].tolist() == [3, 3 + len(one.edges) - 1]
    assert both.names[both.gaps["name"][1]] == "data wait"


def test_lanes_stand_in_order_and_pinned_ones_first() -> None:
    found, own = layout.strips(model(), Counters()), Arrangement()
    placed, top = layout.arrange(found, own)
    assert [p.strip.title for p in placed] == ["Steps", "CPU main", "Stream 7", "Device lag"] and top == 0
    assert all(a.y + a.height == b.y for a, b in zip(placed, placed[1:]))
    own.pin("Stream 7")
    own.hidden.add("lag")
    placed, top = layout.arrange(found, own)
    assert [p.strip.title for p in placed] == ["Stream 7", "Steps", "CPU main"] and top == placed[0].height
    own.pin("Stream 7")
    assert layout.arrange(found, own)[1] == 0


def test_a_lane_folds_and_unfolds() -> None:
    deep = layout.Strip("d", "CPU main", "", "host", 0, 9)
    own, seen = Arrangement(), []
    for _ in range(4):
        placed = layout.arrange([deep], own)[0][0]
        seen.append((placed.state, len(placed.heights)))
        own.toggle(placed)
    assert seen == [(OPEN, layout.MOST_ROWS), (WHOLE, 9), (CLOSED, 1), (OPEN, layout.MOST_ROWS)]
    row = layout.row_at(placed, placed.y + placed.height - 4)
    assert row == len(placed.heights) - 1


@given(st.floats(0, 1e12), st.floats(1e3, 1e12), st.integers(50, 3000))
def test_ticks_are_round_and_have_room(t0: float, span: float, width: int) -> None:
    found, step = layout.ticks(t0, t0 + span, width)
    assert str(int(step)).rstrip("0") in ("1", "2", "5") and step * width / span >= 89.9
    assert len(found) <= width / 89.9 + 2


def test_the_flame_view_sums_by_path() -> None:
    one = model()
    lane = flame.lane_of(one, (0, 320))
    assert lane is not None and lane.title == "CPU main"
    whole = flame.in_order(one, lane, (0, 320))
    assert [len(row) for row in whole.rows] == [2, 3, 1]
    summed = flame.heavy(whole)
    told = [[(one.names[n], int(b - a), int(c)) for n, a, b, c in zip(names, row.start, row.end, counts)]
            for names, row, counts in zip(summed.names, summed.rows, summed.counts)]
    assert told == [[("f", 220, 2)], [("g", 160, 3)], [("h", 10, 1)]]
    row = Row(np.array([0, 10, 40]), np.array([5, 40, 45]), np.zeros(3, np.uint8))
    assert flame.heavy(Flame((row,), (np.array([0, 1, 0], np.int32),))).names[0].tolist() == [1, 0]
    part = flame.in_order(one, lane, (25, 65))
    assert part.rows[0].start.tolist() == [25] and part.rows[0].end.tolist() == [65]


@few
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90), st.integers(0, 4)), min_size=1,
                max_size=50))
def test_sums_of_the_flame_view_keep_all_time(told: list[tuple[int, int, int]]) -> None:
    builder = Builder()
    start = np.array([a for a, _, _ in told], np.int64)
    end = start + np.array([b for _, b, _ in told])
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    depth = depths(start, end, np.zeros(len(told), np.int32))
    names = np.array([builder.code(f"n{told[k][2]}") for k in order], np.int32)
    columns = {"start": start, "end": end, "colour": np.zeros(len(told)), "name": names,
               "ref": np.arange(len(told))}
    builder.add("h", "h", "", "host", columns, depth)
    one = builder.model((0, 400))
    whole = flame.in_order(one, one.lanes[0], (0, 400))
    summed = flame.heavy(whole)
    for before, after, counts in zip(whole.rows, summed.rows, summed.counts):
        assert (before.end - before.start).sum() == (after.end - after.start).sum()
        assert counts.sum() == len(before) and (after.start[1:] >= after.start[:-1]).all()


def test_names_are_short_where_a_kernel_is_long() -> None:
    assert short_name("void at::native::vectorized_elementwise_kernel<4, at::X<float> >(int, X)") == \
        "vectorized_elementwise_kernel"
    assert short_name("aten::convolution") == "aten::convolution"
    assert short_name("nn.Module: Linear_3") == "Linear_3"
