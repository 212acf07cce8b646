"""The simulated machine: one serial host chain, a loader with workers, devices with streams.

Streams are first in, first out, and everything a stream waits for was submitted before.
So an activity's times are known when it is submitted, and one pass over the actions will do.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from typing import Any

from tests.simulator import actions as A
from tests.simulator.actions import Action, Program
from tests.simulator.timeline import Activity, Call, Span, Timeline


class Machine:
    """State of one run. `record` keeps what a trace shows; without it only the step times are kept."""

    def __init__(self, program: Program, record: bool) -> None:
        self.program, self.record = program, record
        self.t = 1_000_000
        self.thread = "main"
        self.ends: dict[tuple[int, int], int] = defaultdict(int)  # (device, stream): end of its last activity
        self.pending: dict[tuple[int, int], tuple[int, int]] = {}  # what it was told to wait for: end, device
        self.events: dict[Any, tuple[int, int]] = {}
        self.starts: dict[int, list[int]] = defaultdict(list)  # per device, sorted starts to come
        self.out = Timeline()
        self.tracing = False
        self.fetched = 0
        self.fetch_times: list[int] = []
        self.free = [k * program.loader.stagger for k in range(max(program.loader.workers, 1))]
        self.ready: dict[int, int] = {}
        self.stack: list[tuple[int, Action]] = []
        self.named: list[str] = []
        self.correlation = 1200
        self.step_last: dict[int, int] = {}

    def note(self, start: int, end: int, label: str) -> None:
        if self.record and self.tracing and end > start:
            self.out.labels.append((start, end, label))

    def label(self) -> str:
        return f"other:{self.named[-1]}" if self.named else "host"

    def called(self, start: int, action: Action) -> int:
        """Keep a call that ends now; its row."""
        if not (self.record and self.tracing):
            return -1
        self.correlation += 1 + (self.correlation % 7 == 3)
        a, thread, number = action, self.thread, self.correlation
        self.out.calls.append(Call(start, self.t, a.name, thread, number, a.op, a.stream, a.info, a.device))
        return len(self.out.calls) - 1

    def room(self, device: int) -> None:
        """Wait until the launch queue has room."""
        starts = self.starts[device]
        passed = bisect_right(starts, self.t)
        if passed:
            del starts[:passed]
        if len(starts) >= self.program.queue:
            self.t = max(self.t, starts[len(starts) - self.program.queue])

    def submit(self, a: Action, called: int, name: str, run: int, gap: int, kind: str, info: Any) -> Activity:
        """Put an activity behind what is on its stream; `called` is the time its latency counts from."""
        lane = (a.device, a.stream)
        start, previous = called + a.latency, self.ends[lane]
        if previous:
            start = max(start, previous + gap)
        peer = False
        if lane in self.pending:
            until, other = self.pending.pop(lane)
            peer = until + gap > start and other != a.device
            start = max(start, until + gap) if until else start
        self.ends[lane] = start + run
        insort(self.starts[a.device], start)
        self.step_last[a.device] = max(self.step_last.get(a.device, 0), start + run)
        return Activity(start, start + run, name, a.device, a.stream, len(self.out.calls), kind, info, peer)

    def keep(self, activity: Activity) -> None:
        if self.record:
            self.out.activities.append(activity if self.tracing else activity._replace(call=-1))

    def drain(self, a: Action) -> int:
        """When what a synchronisation waits for is done: stream a.stream, every stream when it is -1."""
        if isinstance(a.info, tuple):
            return self.events.get(a.info, (0, 0))[0]
        if a.stream >= 0:
            lane = (a.device, a.stream)
            return max(self.ends[lane], self.pending.get(lane, (0, 0))[0])
        return max([end for (device, _), end in self.ends.items() if device == a.device], default=0)


def run(program: Program, record: bool = False) -> Timeline:
    """Simulate every step; the timeline holds the traced ones."""
    m = Machine(program, record)
    for number, step in enumerate(program.steps):
        if number == program.traced:
            if program.drained:
                m.t = max([m.t, *m.ends.values()]) + 90_000
            m.tracing = True
            m.out.activities = [a for a in m.out.activities if a.end > m.t]
        if number >= program.traced:
            if number - program.traced == program.restart:
                m.t = max([m.t, *m.ends.values()]) + 30_000_000
            m.out.step_start.append(m.t)
        m.step_last = {}
        done = -1
        for action in step:
            if action.role == A.PAUSE and done < 0:
                done = m.t
            if record or action.op > A.POP:
                HANDLERS[action.op](m, action)
            elif action.op == A.WORK:  # most actions: no label is kept
                m.t += action.ns
        if number >= program.traced:
            m.out.step_end.append(done if done >= 0 else m.t)
            m.out.last.append(dict(m.step_last))
    m.out.end = m.t
    # The profiler's own at its end.
    _sync(m, Action(A.SYNC, 4000, "cudaDeviceSynchronize", stream=-1, info=True))
    return m.out


def _work(m: Machine, a: Action) -> None:
    m.note(m.t, m.t + a.ns, m.label())
    m.t += a.ns


def _push(m: Machine, a: Action) -> None:
    if m.record:
        m.stack.append((m.t, a))
        if a.role == A.NAMED and a.info == "user_annotation":
            m.named.append(a.name)


def _pop(m: Machine, a: Action) -> None:
    if m.record:
        start, begun = m.stack.pop()
        if m.tracing:
            m.out.spans.append(Span(start, m.t, begun.name, m.thread, begun.info, begun.latency))
        if m.named and m.named[-1] == begun.name and a.role == A.NAMED:
            m.named.pop()


def _thread(m: Machine, a: Action) -> None:
    _work(m, a)
    m.thread = a.name


def _call(m: Machine, a: Action) -> None:
    start = m.t
    m.t += a.ns
    m.note(start, m.t, m.label())
    m.called(start, a)


def _launch(m: Machine, a: Action) -> None:
    start = m.t
    m.room(a.device)
    kind = "communication" if a.info.communication else "compute"
    activity = m.submit(a, m.t, a.info.name, a.run, a.gap, kind, a.info)
    m.t += a.ns
    m.note(start, m.t, m.label())
    m.keep(activity)
    m.called(start, a)


def _graph(m: Machine, a: Action) -> None:
    start = m.t
    m.room(a.device)
    kept, issued = [], m.t
    for number, kernel in enumerate(a.info):
        gap = a.gap if number == 0 else kernel.gap
        kept.append(m.submit(a, issued, kernel.name, kernel.run, gap, "compute", kernel))
    m.t += a.ns
    m.note(start, m.t, m.label())
    for activity in kept:
        m.keep(activity)
    m.called(start, a)


def _copy(m: Machine, a: Action) -> None:
    start, copy = m.t, a.info
    m.room(a.device)
    kind = f"h2d_{copy.memory}" if copy.direction == "h2d" else copy.direction
    activity = m.submit(a, m.t, _copy_name(copy), a.run, a.gap, kind, copy)
    if copy.mode == "async":
        m.t += a.ns
    elif copy.mode == "stage":
        m.t = max(m.t + a.ns, activity.end - copy.lead)
    else:
        m.t = max(m.t + a.ns, activity.end + copy.lead)
    m.note(start, min(m.t, activity.start), "transfer_host")
    m.note(max(start, min(m.t, activity.start)), min(m.t, activity.end), m.label())
    m.note(max(start, activity.end), m.t, "sync")  # a call that outlives its copy has waited for it
    m.keep(activity)
    m.called(start, a)


def _copy_name(copy: A.Copy) -> str:
    memory = copy.memory.capitalize()
    return {
        "h2d": f"Memcpy HtoD ({memory} -> Device)",
        "d2h": f"Memcpy DtoH (Device -> {memory})",
        "d2d": "Memcpy DtoD (Device -> Device)",
        "p2p": "Memcpy PtoP (Device -> Device)",
    }[copy.direction]


def _memset(m: Machine, a: Action) -> None:
    start = m.t
    m.room(a.device)
    activity = m.submit(a, m.t, "Memset (Device)", a.run, a.gap, "memset", a.info)
    m.t += a.ns
    m.note(start, m.t, m.label())
    m.keep(activity)
    m.called(start, a)


def _record(m: Machine, a: Action) -> None:
    lane = (a.device, a.stream)
    done, other = m.pending.get(lane, (0, a.device))
    own = m.ends[lane]
    m.events[a.info] = (own, a.device) if own >= done else (done, other)
    _call(m, a)


def _wait(m: Machine, a: Action) -> None:
    lane, event = (a.device, a.stream), m.events.get(a.info, (0, a.device))
    m.pending[lane] = max(m.pending.get(lane, (0, a.device)), event)
    _call(m, a)


def _sync(m: Machine, a: Action) -> None:
    start = m.t
    m.t += a.ns
    if a.info:
        m.t = max(m.t, m.drain(a) + a.latency)
    m.note(start, m.t, "sync")
    m.called(start, a)


def _alloc(m: Machine, a: Action) -> None:
    start = m.t
    if a.info:
        m.t = max(m.t, m.drain(a._replace(stream=-1, info=True)))
    m.t += a.ns
    m.note(start, m.t, "allocator")
    m.called(start, a)


def _fetch(m: Machine, a: Action) -> None:
    start, loader = m.t, m.program.loader
    number, m.fetched = m.fetched, m.fetched + 1
    if a.info == "inline":
        m.t += a.ns + a.run
    elif a.info == "ready":
        m.t += a.ns
    else:
        worker = number % loader.workers
        ahead = loader.workers * loader.prefetch
        asked = m.fetch_times[number - ahead] if number >= ahead else 0
        m.free[worker] = max(m.free[worker], asked) + a.run
        m.t = max(m.t + a.ns, m.free[worker] + a.latency)
        m.fetch_times.append(m.t)
    if m.tracing:
        m.out.waits.append(m.t - start - a.ns)
    m.note(start, m.t, "input_wait")
    if m.record and m.tracing:
        m.out.spans.append(Span(start, m.t, a.name, m.thread, "user_annotation"))


def _beside(m: Machine, a: Action) -> None:
    kept = m.t, m.thread, m.out.labels
    m.thread, m.out.labels = a.name, []
    for action in a.info:
        HANDLERS[action.op](m, action)
    m.t, m.thread, m.out.labels = kept


HANDLERS = {
    A.WORK: _work,
    A.PUSH: _push,
    A.POP: _pop,
    A.THREAD: _thread,
    A.CALL: _call,
    A.LAUNCH: _launch,
    A.GRAPH: _graph,
    A.COPY: _copy,
    A.MEMSET: _memset,
    A.RECORD: _record,
    A.WAIT: _wait,
    A.SYNC: _sync,
    A.ALLOC: _alloc,
    A.FETCH: _fetch,
    A.BESIDE: _beside,
}
