"""The tape: while a loop runs steadily its hooks only note what happened and when.

After the work of a step the caches are cold, and what loop.py does for each hook takes three
times as long as when it is done for many steps in a row. So the notes of up to 0.1 s are
played to it at once, and it sees them as if they came one by one. Notes are taken only of a
loader that is known to train, on the step's thread, while nothing needs its boundaries as
they come: no profiler window, no CUDA events, no discovery of models.
"""

import time
from _thread import get_ident

from .stages import DATA

FETCH, FETCHED, FORWARD, INFERENCE, BACKWARD, LEFT, STEP, STEPPED, ELSEWHERE = range(9)
NOTED = -1  # stands for the depth of a stage that is on the tape

_USUAL = [FORWARD, LEFT, BACKWARD, LEFT, STEP, STEPPED, FETCH]
_LONGEST_NS = 100_000_000


class Tape:
    """`after(now)` is called when notes have been played."""

    __slots__ = ("_depths", "_loader", "_loop", "_note", "_notes", "_optimizers", "_until", "after", "clock",
                 "failed", "playing", "thread", "thread_clock")

    def __init__(self, loop, clock=time.monotonic_ns, thread_clock=time.thread_time_ns):
        self._loop = loop
        self.clock = clock
        self.thread_clock = thread_clock
        self.after = None
        self.playing = False
        self.failed = None  # the error that ended it for good
        self.forget()

    def forget(self):
        """Lose what was noted: in a forked child it is the parent's."""
        self.thread = 0  # whose notes are taken; 0: nobody's
        self._until = 0
        self._loader = None
        self._notes = []
        self._note = self._notes.extend  # atomic: another thread may note an optimizer of its own
        self._depths = []  # of the stages that were entered on the tape and not left yet; None: not counted
        self._optimizers = []

    def start(self, loader):
        """Take notes from here on if the loop is steady: after a fetch, with no stage open."""
        loop = self._loop
        if (self.failed is None and loader.train and loader.told and loop.confirmed and loop.open
                and not loop.stack and not loop.arrival and loop.device is None and not self._depths
                and loop.phases.loader and not loop.phases.held and not loop.without_loader):
            until = min(loop.between_at, loop.t0 + _LONGEST_NS)
            if until > loop.mark:
                del self._notes[:]
                self._loader = loader
                self._until = until
                self.thread = loop.thread

    def stop(self):
        """Play what was noted. Whoever calls the loop, or changes what it depends on, does this before."""
        if self.thread and not self.playing:
            self.thread = 0
            notes = self._notes[:]
            del self._notes[:len(notes)]
            self.playing = True
            try:
                self._play(notes)
            except Exception as error:
                self.failed = error
                self._loop.open = False
            self.playing = False
            if self.after is not None:
                self.after(self._loop.t0)

    # Notes. What returns 0 has not been noted, and is for the loop.

    def fetch(self, loader, first):
        if get_ident() != self.thread:
            return 0
        now = self.clock()
        if first or now >= self._until or loader is not self._loader:
            self.stop()
            return 0
        self._note((FETCH, now, self.thread_clock()))
        return NOTED

    def fetched(self, size):
        if self.thread:
            cpu = self.thread_clock()
            self._note((FETCHED, self.clock(), cpu, size))
            return NOTED
        return 0

    def enter(self, what):
        if get_ident() != self.thread:
            return 0
        now = self.clock()
        if now >= self._until:
            self.stop()
            return 0
        self._note((what, now))
        return NOTED

    def leave(self, depth, hook):
        """The way out of a stage of `hook`, noted or not."""
        try:
            if depth == NOTED and self.thread:
                self._note((LEFT, self.clock()))
                return
            depth = self.depth(depth)
            if depth is not None:
                self._loop.pop(depth)
        except Exception as error:
            hook.fail(error)

    def stepped(self, depth):
        """The way out of an optimizer."""
        if depth == NOTED and self.thread:
            self._note((STEPPED, self.clock()))
            return
        if self.thread:
            self.stop()
        if depth == NOTED:
            depth = self._optimizers.pop() if self._optimizers else None
        if depth is not None:
            self._loop.optimizer_exit(depth)

    def elsewhere(self):
        """An optimizer steps on another thread."""
        if self.thread:
            self._note((ELSEWHERE, 0))
            return NOTED
        return 0

    def depth(self, depth):
        """What the loop said on the way in, once the tape has stopped; None: it does not count."""
        if self.thread:
            self.stop()
        if depth == NOTED:
            return self._depths.pop() if self._depths else None
        return depth

    # Playing

    def _play(self, notes):
        loop, loader, depths = self._loop, self._loader, self._depths
        i, n = 0, len(notes)
        while i < n:
            what, now = notes[i], notes[i + 1]
            if what == FETCH and loop.open and loop.used and loop.stage != DATA and _usual(notes, i):
                i = self._play_usual(notes, i)
                continue
            i += 2
            if what == LEFT:
                depth = depths.pop() if depths else None
                if depth is not None:
                    loop.pop(depth, now)
            elif what in (FORWARD, INFERENCE):
                depths.append(None if loop.stage == DATA else loop.forward_at(now, what == FORWARD))
            elif what == BACKWARD:
                depths.append(None if loop.stage == DATA else loop.backward_at(now))
            elif what == STEP:
                self._optimizers.append(loop.optimizer_at(now))
            elif what == STEPPED:
                depth = self._optimizers.pop() if self._optimizers else None
                if depth is not None:
                    loop.optimizer_exit(depth, now)
            elif what == FETCH:
                depths.append(loop.fetch_at(now, notes[i], loader, False))
                i += 1
            elif what == FETCHED:
                depth = depths.pop() if depths else None
                if depth is not None:
                    loop.fetched_at(now, notes[i], depth, loader, notes[i + 1])
                i += 2
            else:
                loop.optimizer_calls += 1

    def _play_usual(self, notes, i):
        """Steps of the usual shape from the fetch at `i` on, as the loop makes them. Returns their end."""
        loop, sizes = self._loop, self._loader.sizes
        loop.end_step(notes[i + 1], notes[i + 2])
        while _usual(notes, i):
            (_, t0, cpu0, _, arrived, cpu1, size, _, f0, _, f1, _, b0, _, b1, _, o0, _, o1,
             _, t1, cpu) = notes[i:i + 22]
            sizes.append(size)
            step = [loop.index, t0, t1, arrived - t0, 0, f1 - f0, b1 - b0, o1 - o0, cpu1 - cpu0, cpu - cpu0,
                    sizes.popleft(), 1, 0, 0, loop.flags]
            loop.index += 1
            loop.backwards += 1
            loop.sink(step)
            i += 19
        return i


def _usual(notes, i):
    """Whether this fetch and the next have one forward, one backward and one optimizer between them."""
    return notes[i + 7:i + 20:2] == _USUAL and notes[i + 3] == FETCHED
