"""Where the loop's thread is while a step takes long: a thread of ours reads its stack ten times a second.

Nothing is read while steps take their usual time: the thread wakes, compares two numbers and sleeps on.
"""

import sys
import time
from _thread import get_ident, start_new_thread
from collections import Counter, deque

from .sites import is_users, shown
from .tape import FETCH

PERIOD_S = 0.1
LONG = 3  # times the median step
SHORTEST_NS = 50_000_000  # shorter ones are seldom met, and often chance
FEWEST = 8  # steps that a median is taken of
MOST = 20  # looks at one step
DEPTH = 64  # frames that are looked at
KEPT = 16  # of them, the innermost
_TIME = 1 << 20  # less is no time, but a kind of note or a number of samples


class Sampler:
    """`found` takes what was seen in each long step: when first, "stack", its ns until the last look, data.

    `walls` are the newest steps in ns; whoever finishes steps puts them there.
    """

    def __init__(self, loop, found, clock=time.monotonic_ns, sleep=time.sleep):
        self.loop = loop
        self.clock = clock
        self.sleep = sleep
        self.walls = deque(maxlen=64)
        self.failed = None
        self._found = found
        self._run = None  # the token of the thread that runs
        self._start = None  # of the step that is looked at
        self._looks = []  # when, stack

    def start(self):
        if self._run is None:
            self._run = run = object()
            start_new_thread(self._watch, (run,))

    def stop(self):
        """The thread ends at its next look; after a fork there is none."""
        self._run = None

    def _watch(self, run):
        while self._run is run:
            self.sleep(PERIOD_S)
            try:
                self.look()
            except Exception as error:
                self.failed = error
                return

    def look(self):
        """Read the stack if the step that is open takes long; tell of the one before when it is over."""
        loop = self.loop
        start = begun(loop)
        if start != self._start:
            self.tell()
            self._start = start
        now = self.clock()
        if (start is None or not loop.open or now - start < SHORTEST_NS or len(self._looks) >= MOST
                or len(self.walls) < FEWEST or loop.thread == get_ident()):
            return
        walls = sorted(self.walls)
        if now - start > LONG * walls[len(walls) // 2]:
            stack = stack_of(loop.thread)
            if stack is not None:
                self._looks.append((now, stack))

    def tell(self):
        """What was seen most in the step that was looked at."""
        looks, self._looks = self._looks, []
        if not looks:
            return
        site, times = Counter(site for _, (site, _) in looks).most_common(1)[0]
        lines = Counter(lines for _, (seen, lines) in looks if seen == site).most_common(1)[0][0]
        self._found.append((looks[0][0], "stack", looks[-1][0] - self._start, {
            "site": site, "lines": list(lines), "looks": len(looks), "there": times}))


def begun(loop):
    """When the step began that the loop is in, ns; None when that cannot be told now."""
    tape = loop.tape
    if not tape.thread:
        return loop.t0
    notes = tape._notes[-64:]  # one copy: the loop goes on writing
    for i in range(len(notes) - 2, -1, -1):
        if notes[i] == FETCH and notes[i + 1] > _TIME:
            return notes[i + 1]
    return None if len(notes) == 64 else loop.t0


def stack_of(thread):
    """("file:line" of the user's innermost frame or "", lines "file:line function", innermost first).

    None when the thread is gone.
    """
    frame = sys._current_frames().get(thread)
    if frame is None:
        return None
    site, lines = "", []
    for _ in range(DEPTH):
        if frame is None:
            break
        name = frame.f_code.co_filename
        if frame.f_globals.get("__package__") != __package__:
            wanted = not site and is_users(name)
            if wanted or len(lines) < KEPT:
                line = "%s:%d" % (shown(name), frame.f_lineno or 0)
                site = line if wanted else site
                lines.append("%s %s" % (line, frame.f_code.co_name))
        frame = frame.f_back
    return site, tuple(lines)
