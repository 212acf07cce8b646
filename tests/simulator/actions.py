"""What a training loop does, as a list of actions: the input of the simulated machine.

A step is a list of actions of one serial chain: the step's thread, and the autograd
thread while the step's thread waits for it. Durations are drawn before anything is
simulated, so that a changed program differs from the first in its change only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

# What an action is.
WORK = 0  # time passes on the host
PUSH = 1  # an operator or annotation begins
POP = 2  # the innermost one ends
THREAD = 3  # the chain goes on on another thread after a hand-over
CALL = 4  # a runtime call that neither launches nor waits
LAUNCH = 5  # a kernel
GRAPH = 6  # a graph: one call, many kernels
COPY = 7
MEMSET = 8
RECORD = 9  # an event: a snapshot of a stream
WAIT = 10  # a stream waits for an event
SYNC = 11  # the host waits for a stream, an event or the device
ALLOC = 12  # cudaMalloc, cudaFree and kin
FETCH = 13  # the loader's __next__
BESIDE = 14  # what another thread does from now on, beside the chain

# Why an action happens: what a scenario goes by.
PYTHON = "python"  # between operators
OPERATOR = "operator"  # operators, and the calls in them
HANDOVER = "handover"  # from thread to thread
BATCH = "batch"  # copies of the batch to the device and their operators
SCALAR = "scalar"  # a scalar read: operator, copy and wait
SAVE = "save"  # copies of a checkpoint
NAMED = "named"  # inside an annotation of the user's for work beside the training
LOADER = "loader"
ALLOCATOR = "allocator"
REDUCE = "reduce"  # a collective, its operator and its events
PAUSE = "pause"  # between the annotations of two steps


class Action(NamedTuple):
    """One action; times in ns."""

    op: int
    ns: int = 0  # the host's own time: of work, of the call, of the fetch when the batch is ready
    name: str = ""
    role: str = OPERATOR
    stream: int = 7
    latency: int = 0  # from the start of the call to the earliest start on the device; tail of a wait
    gap: int = 0  # after the stream's previous activity, or after what the stream waits for
    run: int = 0  # of the device activity; of the batch's production
    # PUSH: category; LAUNCH: Kernel; GRAPH: its kernels; COPY: Copy; RECORD, WAIT: event; SYNC: whether it
    # blocks, or the event it waits for; ALLOC: whether it drains the device; FETCH: "ready", "inline", "";
    # BESIDE: its actions
    info: Any = None
    device: int = 0


class Kernel(NamedTuple):
    """What is written on a kernel."""

    name: str
    grid: int
    block: int
    registers: int
    shared: int
    communication: bool = False
    elements: int = 0
    run: int = 0  # of a kernel in a graph
    gap: int = 0


class Copy(NamedTuple):
    """A copy: how much, from where to where, and how the call behaves."""

    bytes: int
    direction: str  # h2d, d2h, d2d
    memory: str  # pageable, pinned
    mode: str  # "async" returns at once, "stage" blocks from the activity's start until
    #                        `lead` before its end, "block" until its end and a tail
    lead: int = 0


@dataclass(frozen=True)
class Loader:
    """The training loader. Without workers the batch is made inside the fetch."""

    workers: int = 0
    prefetch: int = 2
    stagger: int = 0  # ns between the starts of two workers; 0: they deliver in bursts for a while


@dataclass(frozen=True)
class Program:
    """Every step of a run; the profiler's window is steps[traced:], numbered from `first`."""

    steps: list[list[Action]]
    traced: int
    loader: Loader = field(default_factory=Loader)
    queue: int = 1020  # activities that may be submitted and not started
    first: int = 0
    drained: bool = True  # the profiler's start waits for the device
    restart: int = -1  # traced step with which a second profiler window begins; -1: there is one window
    devices: int = 1

    def number(self, k: int) -> int:
        """Number of the k-th traced step: a second window leaves a gap in the numbering."""
        return self.first + k + (7 if 0 < self.restart <= k else 0)
