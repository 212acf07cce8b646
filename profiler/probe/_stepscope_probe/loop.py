"""Where steps begin and end.

A step begins at the entry into the loader (fetches with nothing run between them count
once). Without a loader it begins at the first forward after a backward, and without
backward at each outermost forward.
"""

import threading
import time
from _thread import get_ident

from .phases import EPOCH_FIRST, EVALUATION, PARTIAL, Phases, used
from .stages import BACKWARD, DATA, FORWARD, H2D, OPTIMIZER, OTHER, Stages
from .tape import Tape

NEVER = 1 << 63  # ns
_AHEAD = 256  # fetches ahead of the first forward beyond which it is a pass over the data, not prefetching


class Loop(Stages):
    """The state of the loop in this process. `sink(step)` takes each finished step, in order."""

    __slots__ = ("_data_cpu0", "_other_at_arrival", "after_backward", "arrival", "background", "backwards",
                 "between", "between_at", "blind", "confirmed", "cpu0", "cycles", "data_cpu", "fetched",
                 "flags", "forwards", "index", "loaders", "open", "optimizer_calls", "phases", "sink",
                 "step_flags", "t0", "tail", "tape", "thread", "thread_clock", "unsure", "used",
                 "without_loader")

    def __init__(self, sink, clock=time.monotonic_ns, thread_clock=time.thread_time_ns):
        Stages.__init__(self, clock)
        self.phases = Phases(sink)
        self.sink = sink
        self.tape = Tape(self, clock, thread_clock)
        self.between = None  # called between two steps from that time on; true when it took time
        self.between_at = NEVER
        self.thread_clock = thread_clock
        self.arrival = False  # h2d is the time from the batch's arrival to forward
        self.flags = 0  # of every step while set: PROFILED
        self.reset()

    def reset(self):
        """Forget everything: at the start, and in a forked child."""
        self.tape.forget()
        self.thread = None
        self.confirmed = False  # whether the thread has run a model, not just a loader
        self.phases.reset()
        self.background = None  # a loader that another thread reads
        self.index = self.backwards = 0
        self.open = self.without_loader = False
        self._clean(self.clock())

    # Threads

    def mine(self, evidence=True):
        """Whether this thread is the step's. A model that runs is evidence for it, a loader is not."""
        ident = get_ident()
        if ident != self.thread:
            if self.thread is None:
                self.thread = ident
            elif not evidence or (self.confirmed and _alive(self.thread)):
                return False
            else:
                self._take_over(ident)
        if evidence:
            self.confirmed = True
        return True

    def _take_over(self, ident):
        self.tape.stop()
        for loader in self.loaders:
            loader.background = True
            self.background = loader
        self.thread = ident
        self.open = False
        self._clean(self.clock())

    # The loader

    def fetch_enter(self, loader, first):
        """Entry into the loader's __next__. Returns the depth for `fetch_exit`, or None to leave it alone.

        `first`: nothing has come from this iterator yet.
        """
        if get_ident() != self.thread and not self.mine(evidence=False):
            loader.background = True
            self.background = loader
            return None
        return self.fetch_at(self.clock(), self.thread_clock(), loader, first)

    def fetch_at(self, now, cpu, loader, first):
        if self.stage == DATA:
            return None
        if not self.open or self.used:
            if self.without_loader:
                self._forget_trial()
            now = self._boundary(now, cpu)
            self._data_cpu0 = self.cpu0
        else:
            if self.tail or (first and loader in self.loaders):
                self._begin(now, cpu)
            self._data_cpu0 = cpu
        self.without_loader = False
        if loader not in self.loaders:
            if first and not self.loaders:
                self.step_flags |= EPOCH_FIRST
            self.loaders.append(loader)
            self.unsure |= not loader.train
        if first:
            loader.sizes.clear()
        return self.push(DATA, now)

    def fetch_exit(self, depth, loader, size, stopped):
        """The way out of __next__. `size`: samples in the batch, 0 when unknown."""
        self.fetched_at(None, self.thread_clock(), depth, loader, size, stopped)

    def fetched_at(self, now, cpu, depth, loader, size, stopped=False):
        self.data_cpu += cpu - self._data_cpu0
        self.pop(depth, now)
        self._other_at_arrival = self.acc[OTHER]
        if not stopped:
            self.fetched += 1
            loader.sizes.append(size)
            return
        self.phases.loader_ended(loader)
        if not self.used:
            # Batches fetched ahead may still be run after the loader has ended.
            self.open = self.tail = bool(self.loaders[0].sizes) and self.fetched <= _AHEAD

    # Forward, backward, optimizer

    def forward_enter(self, training=True):
        """Entry into an outermost root module (or a graph's replay). None: it does not count."""
        if self.stage == DATA or not ((self.confirmed and get_ident() == self.thread) or self.mine()):
            return None
        return self.forward_at(self.clock(), training)

    def forward_at(self, now, training):
        outermost = self.stage == OTHER or self.stage == OPTIMIZER
        if outermost and (not self.open or self.without_loader):
            now = self._forward_boundary(now, training)
        if outermost:
            if self.after_backward or not self.cycles:
                self.cycles += 1
                self.after_backward = False
            if self.arrival and self.fetched and not self.used:
                self._arrived(now)
            self.used = True
            self.blind = False
            self.forwards += 1
        return self.push(FORWARD, now)

    def _forward_boundary(self, now, training):
        if not self.open:
            if self.phases.loader:
                return now  # between epochs: a model that runs there is no step
            boundary = True
        elif self.phases.backward:
            boundary = self.after_backward or not training or bool(self.step_flags & EVALUATION)
        else:
            boundary = self.used
        if boundary:
            now = self._boundary(now, self.thread_clock())
            self.without_loader = True
            if self.phases.backward and not training:
                self.step_flags |= EVALUATION
        return now

    def _arrived(self, now):
        self.acc[OTHER] += now - self.mark
        self.mark = now
        moved = self.acc[OTHER] - self._other_at_arrival
        self.acc[OTHER] -= moved
        self.acc[H2D] += moved

    def backward_enter(self):
        if self.stage == DATA or not ((self.confirmed and get_ident() == self.thread) or self.mine()):
            return None
        return self.backward_at(self.clock())

    def backward_at(self, now):
        if self.stage == OTHER or self.stage == OPTIMIZER:
            if not self.open or self.blind:
                now = self._blind_boundary(now)
            self.after_backward = self.used = True
            if self.unsure or not self.phases.backward:
                self.trained()
        self.backwards += 1
        return self.push(BACKWARD, now)

    def _blind_boundary(self, now):
        """Where no forward can be seen, a backward after an optimizer call begins a step."""
        if not self.optimizer_calls if self.open else self.phases.loader:
            return now
        now = self._boundary(now, self.thread_clock())
        self.without_loader = self.blind = True
        return now

    def trained(self):
        """A backward runs in this step: its loaders train."""
        self.unsure = False
        if not self.phases.backward and self.phases.held and self.without_loader:
            self._merge_held()
        self.phases.trained(self.loaders)
        if self.background is not None:
            self.background.train = True

    def optimizer_enter(self):
        if get_ident() != self.thread and not self.mine(evidence=False):
            if not self.tape.elsewhere():  # an optimizer inside backward, on autograd's thread
                self.optimizer_calls += 1
            return None
        return self.optimizer_at(self.clock())

    def optimizer_at(self, now):
        if self.stage == DATA:
            return None
        if self.stage != OPTIMIZER:  # else one optimizer wraps another
            self.optimizer_calls += 1
        self.in_optimizer += 1
        self.used = True
        return self.push(OPTIMIZER, now)

    def optimizer_exit(self, depth, now=None):
        self.in_optimizer = max(0, self.in_optimizer - 1)
        self.pop(depth, now)

    # Boundaries

    def _boundary(self, now, cpu):
        """End the step that is open, and begin one. Returns when that one began."""
        if self.open and self.used:
            self.end_step(now, cpu)
        if now >= self.between_at and self.between(now):
            now, cpu = self.clock(), self.thread_clock()
        self._begin(now, cpu)
        return now

    def _begin(self, now, cpu):
        self._clean(now, cpu)
        self.open = True
        if self.device is not None:
            self.device.step(self.index, now)

    def _clean(self, now, cpu=0):
        """The state at the beginning of a step. A stage left open by an exception ends here."""
        self.begin_stages(now)
        self.t0 = now
        self.used = self.after_backward = self.blind = self.tail = self.unsure = False
        self.step_flags = self.cycles = self.forwards = self.fetched = 0
        self.optimizer_calls = self.data_cpu = 0
        self.loaders = []
        self._other_at_arrival = 0
        self.cpu0 = cpu

    def end_step(self, now, cpu, partial=0):
        self.acc[self.stage] += now - self.mark
        self.mark = now
        acc = self.acc
        loaders = self.loaders or ([self.background] if self.background is not None else [])
        step = [self.index, self.t0, self.last_exit if self.tail or partial else now,
                acc[DATA], acc[H2D], acc[FORWARD], acc[BACKWARD], acc[OPTIMIZER],
                self.data_cpu, cpu - self.cpu0, used(loaders, self.cycles), self.optimizer_calls,
                self.syncs, self.sync_ns, self.step_flags | self.flags | partial]
        self.index += 1
        self.open = False
        if self.loaders and self.loaders[0].train:
            self.sink(step)
        else:
            self.phases.take(step, self.loaders)

    def _forget_trial(self):
        """A model called a few times before the loader's first batch is no step of the loop."""
        if not self.phases.backward:
            index = self.phases.forget()
            if index is not None:
                self.index = index
            self.open = False

    def _merge_held(self):
        """The forwards before the first backward were one step's."""
        held = [step for _, step in self.phases.held]
        for step in held:
            for stage, value in zip((DATA, H2D, FORWARD, BACKWARD, OPTIMIZER), step[3:8]):
                self.acc[stage] += value
            self.cpu0 -= step[9]
        self.index = self.phases.forget()
        self.t0 = held[0][1]

    def finish(self):
        """The process ends: what is open is the last step."""
        if self.open and self.used:
            self.end_step(self.clock(), self.thread_clock(), 0 if self.tail else PARTIAL)
        self.open = False
        self.phases.end()


def _alive(ident):
    return ident in threading._active
