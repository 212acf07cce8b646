"""The partition of random traces, against one that looks at every nanosecond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.trace import intervals, steps
from profiler.analysis.trace.breakdown import classes
from profiler.analysis.trace.breakdown.labels import Labels
from profiler.analysis.trace.breakdown.partition import partition
from profiler.analysis.trace.device.busy import busy
from profiler.analysis.trace.joined import Joined
from profiler.trace import names
from profiler.trace.model import NONE, Kind
from profiler.trace.names import Call
from tests.analysis.trace.build import D, H, kernel, step, trace

HOST = [(Kind.OPERATOR, "aten::mm"), (Kind.OPERATOR, "MmBackward0"), (Kind.ANNOTATION, "collate"),
        (Kind.ANNOTATION, "save_model"), (Kind.ANNOTATION, "forward"), (Kind.ANNOTATION, "outer"),
        (Kind.ANNOTATION, "enumerate(DataLoader)#_Iter.__next__"), (Kind.PYTHON, "train.py(3): main"),
        *((Kind.RUNTIME, name) for name in (
            "cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaMalloc", "cudaStreamSynchronize",
            "cudaEventRecord", "cudaGraphLaunch"))]
DEVICE = [(Kind.KERNEL, "gemm"), (Kind.KERNEL, "ncclDevKernel_AllReduce"), (Kind.MEMSET, "Memset (Device)"),
          (Kind.MEMCPY, "Memcpy HtoD (Pageable -> Device)"), (Kind.MEMCPY, "Memcpy DtoH (Device -> Pinned)")]
END = 60
TIMES = st.tuples(st.integers(0, END), st.integers(0, 14))


@st.composite
def rows(draw: st.DrawFn) -> list[H | D]:
    """A few host events on two threads, and activities of which some have a launch among them."""
    found: list[H | D] = []
    for k, (t0, length) in enumerate(draw(st.lists(TIMES, min_size=6, max_size=16))):
        kind, name = draw(st.sampled_from(HOST))
        found.append(H(kind, name, t0, t0 + length, draw(st.integers(0, 1)), k + 1))
    for t0, length in draw(st.lists(TIMES, min_size=2, max_size=8)):
        kind, name = draw(st.sampled_from(DEVICE))
        device, stream = draw(st.sampled_from([0, 0, 0, 1])), draw(st.sampled_from([7, 20]))
        found.append(D(kind, name, t0, t0 + length, draw(st.integers(1, 16)), device, stream))
    edges = sorted(draw(st.lists(st.integers(0, END), min_size=2, max_size=8, unique=True)))
    number = 3
    for t0, t1 in zip(edges, edges[1:], strict=False):
        number += draw(st.sampled_from([1, 1, 1, 2]))
        found.append(step(number, t0, t1))
    return found


class EveryNanosecond:
    """The definitions, section 3, word by word and instant by instant."""

    def __init__(self, j: Joined, s: steps.Steps, device: int) -> None:
        self.j, self.loop, self.device = j, s.thread, device
        host, dev = j.trace.host, j.trace.device
        self.name = [j.trace.names[c] for c in host.name.tolist()]
        self.host = list(zip(host.start.tolist(), host.end.tolist(), strict=True))
        self.dev = {int(r): self.device_time(r) for r in np.flatnonzero(dev.device == device)}
        self.launches = [self.host[r][0] for r in range(len(host)) if j.kernel_launch[r]]
        self.autograd = sorted({int(host.thread[r]) for r in np.flatnonzero(steps.in_autograd(j))
                                if host.thread[r] != self.loop})

    def busy(self, t: int) -> str | None:
        running = [r for r, (t0, t1) in self.dev.items() if t0 <= t < t1]
        kind = self.j.trace.device.kind
        if any(self.j.compute[r] for r in running):
            return "compute"
        if any(self.j.communication[r] for r in running):
            return "communication_exposed"
        return "transfer_exposed" if any(kind[r] in (Kind.MEMCPY, Kind.MEMSET) for r in running) else None

    def next(self, t: int) -> int:
        """The activity that ends the gap around an idle instant; of several the one launched first."""
        begun = min((t0 for t0, _ in self.dev.values() if t0 > t), default=None)
        rows = [r for r, (t0, _) in self.dev.items() if t0 == begun]
        launch = self.j.launch
        return min(rows, default=NONE, key=lambda r: (
            self.host[launch[r]][0] if launch[r] >= 0 else 10**9, self.dev[r][1], r))

    def gap_ends(self, t0: int, t1: int) -> Iterator[int]:
        """Activities that end an idle gap which lies in [t0, t1) or reaches into it."""
        ended = set()
        for t in range(t0, t1):
            if self.busy(t) is None and (row := self.next(t)) != NONE and row not in ended:
                ended.add(row)
                yield row

    def at(self, t: int, t1: int, latency: float) -> str:
        busy_at = self.busy(t)
        if busy_at is not None:
            return busy_at
        row = self.next(t)
        if row == NONE:
            return self.chain(self.loop, t)
        launch = int(self.j.launch[row])
        if launch == NONE:
            return "queued" if t >= self.dev[row][0] - latency else self.chain(self.loop, t)
        t_call, t_returned = self.host[launch]
        if t >= t_call:
            copying = self.j.call[launch] == Call.MEMCPY
            return "queued" if t >= t_returned else "transfer_host" if copying else "host"
        return self.chain(int(self.j.trace.host.thread[launch]), t)

    def chain(self, thread: int, t: int) -> str:
        partners = self.autograd if thread == self.loop else [self.loop]
        for one in [thread, *partners]:
            found = self.thread(one, t)
            if found is not None:
                return found
        return "host"

    def thread(self, thread: int, t: int) -> str | None:
        own = [r for r, (t0, t1) in enumerate(self.host)
               if self.j.trace.host.thread[r] == thread and t0 <= t < t1]
        kind, call = self.j.trace.host.kind, self.j.call
        if any(names.is_loader(self.name[r]) for r in own):
            return "input_wait"
        if any(call[r] == Call.ALLOCATOR for r in own):
            return "allocator"
        copies = [[self.device_time(d) for d in np.flatnonzero(self.j.launch == self.j.outer_call[r])]
                  for r in own if call[r] == Call.MEMCPY]
        if any(all(t < t0 for t0, _ in activities) for activities in copies):
            return "transfer_host"
        if any(call[r] == Call.SYNC for r in own) or any(
                activities and all(t >= t1 for _, t1 in activities) for activities in copies):
            return "sync"
        named = [r for r in own if kind[r] == Kind.ANNOTATION and not names.is_framework(self.name[r])
                 and (names.is_named_work(self.name[r])
                      or not any(self.host[r][0] <= launch < self.host[r][1] for launch in self.launches))]
        if named:
            return classes.other(self.name[max(named)])
        return "host" if any(kind[r] not in (Kind.ANNOTATION, Kind.PYTHON) for r in own) else None

    def device_time(self, row: int) -> tuple[int, int]:
        return int(self.j.trace.device.start[row]), int(self.j.trace.device.end[row])


@settings(max_examples=120, deadline=None)
@given(rows())
def test_every_instant(drawn: list[H | D]) -> None:
    j = Joined(trace(drawn))
    s = steps.find(j)
    if not len(j.trace.device) or not len(s):
        return
    for device in np.unique(j.trace.device.device).tolist():
        p = partition(j, s, device)
        real = p.windows[p.windows[:, 1] > p.windows[:, 0]]
        if not len(real):
            continue
        t0, t1 = int(real[:, 0].min()), int(real[:, 1].max())
        every = EveryNanosecond(j, s, device)
        late = [every.dev[r][0] - every.host[j.launch[r]][0]
                for r in every.gap_ends(t0, t1) if j.launch[r] >= 0]
        late = [ns for ns in late if ns >= 0]
        latency = round(float(np.median(late))) if late else 0
        for k, (w0, w1) in enumerate(p.windows.tolist()):
            wanted = Counter(every.at(t, t1, latency) for t in range(w0, w1))
            got = Counter({name: n for name, n in zip(p.classes, p.ns[k].tolist(), strict=True) if n})
            got["queued"] += got.pop("queued:peer", 0)
            assert +got == wanted


@settings(max_examples=120, deadline=None)
@given(rows())
def test_sums_are_exact_and_busy_time_fits_into_wall_time(drawn: list[H | D]) -> None:
    j = Joined(trace(drawn))
    s = steps.find(j)
    p = partition(j, s)
    lengths = p.windows[:, 1] - p.windows[:, 0]
    assert (p.ns >= 0).all()
    assert p.ns.sum(axis=1).tolist() == lengths.tolist()
    if p.device == NONE:
        return
    by_kind = sum(p.transfer_by_kind.values(), np.zeros(len(s), np.int64))
    assert by_kind.tolist() == p.ns[:, p.classes.index("transfer_exposed")].tolist()
    assert (p.launching <= p.ns[:, p.classes.index("host")]).all()
    assert p.gaps is not None
    gap, length = p.gaps.piece_gap, p.gaps.pieces[:, 1] - p.gaps.pieces[:, 0]
    assert np.bincount(gap, length, len(p.gaps)).tolist() == (p.gaps.end - p.gaps.start).tolist()
    for k, cause in enumerate(p.gaps.cause.tolist()):
        ns = Counter[int]()
        for code, n in zip(p.gaps.piece_code[gap == k].tolist(), length[gap == k].tolist(), strict=True):
            ns[code] += n
        assert ns[cause] == max(ns.values())
    work = busy(j, p.device)
    parts = [work.compute, work.communication, *work.transfers.values()]
    wall = intervals.union(j.trace.device.start, j.trace.device.end)
    assert sum(intervals.total(part) for part in parts) <= intervals.total(wall)
    assert sum(p.mean_ns.values()) == pytest.approx(p.mean_window_ns)


@settings(max_examples=80, deadline=None)
@given(rows(), st.randoms(use_true_random=False), st.booleans(), st.integers(0, 10**15))
def test_neither_order_nor_thread_numbers_nor_the_clock_matter(drawn: list[H | D], random: Random, swap: bool,
                                                               shift: int) -> None:
    def key(r: H | D) -> tuple[object, ...]:
        return type(r), r.start, r.end, getattr(r, "thread", 0)

    drawn = list({key(r): r for r in drawn}.values())  # of equal times on a thread the file's order counts
    one = Joined(trace(drawn))
    s = steps.find(one)
    p = partition(one, s)
    moved = [replace(r, start=r.start + shift, end=r.end + shift) for r in drawn]
    if swap:
        moved = [replace(r, thread=1 - r.thread) if isinstance(r, H) else r for r in moved]
    random.shuffle(moved)
    two = Joined(trace(moved))
    q = partition(two, steps.find(two))
    order = [q.classes.index(name) for name in p.classes]
    assert q.ns[:, order].tolist() == p.ns.tolist()
    assert q.launching.tolist() == p.launching.tolist()


def test_the_generator_makes_what_is_to_be_tested() -> None:
    """All classes come up; a property that holds for want of cases says nothing."""
    seen: set[str] = set()

    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(rows())
    def look(drawn: list[H | D]) -> None:
        p = partition(j := Joined(trace(drawn)), steps.find(j))
        seen.update(name for name, n in zip(p.classes, p.ns.sum(axis=0).tolist(), strict=True) if n)

    look()
    assert set(classes.BASE) - {"queued:peer"} <= seen
    assert {"other:collate", "other:save_model"} <= seen


def test_labels_of_a_thread_that_does_nothing() -> None:
    j = Joined(trace([step(1, 0, 10), kernel(2, 4)]))
    track = Labels(j, steps.find(j)).chain(0)
    assert track.pieces(np.array([[0, 10]]))[1].tolist() == [classes.UNKNOWN]
