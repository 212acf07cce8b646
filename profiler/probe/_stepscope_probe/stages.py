"""Stages: every nanosecond of the step's thread goes to exactly one.

Stages nest; the first of data, h2d, optimizer, backward, forward that is open takes the
time. A closure handed to an optimizer is the loop's own code, so forward and backward
inside an optimizer count as themselves.
"""

OTHER, FORWARD, BACKWARD, OPTIMIZER, H2D, DATA = range(6)  # a higher one takes the time


class Stages:
    """The time of one step by stage, in ns."""

    # Slots, here and in Loop: after a step's work the caches are cold, and every line of memory counts.
    __slots__ = ("acc", "clock", "device", "in_optimizer", "last_exit", "mark", "stack", "stage", "sync_ns",
                 "syncs")

    def __init__(self, clock):
        self.clock = clock
        self.device = None  # the CUDA events, while they are on

    def begin_stages(self, now):
        """A step begins. A stage that an exception left open ends here."""
        self.acc = [0] * 6
        self.stack = []
        self.stage = OTHER
        self.mark = self.last_exit = now
        self.in_optimizer = 0
        self.syncs = self.sync_ns = 0

    def push(self, stage, now):
        """Begin a stage. Returns what `pop` needs to end it."""
        cur = self.stage
        stack = self.stack
        self.acc[cur] += now - self.mark
        self.mark = now
        depth = len(stack)
        stack.append(cur)
        if stage > cur:
            self.stage = stage
            if self.device is not None:
                self.device.begin(stage, now)
        elif cur == OPTIMIZER and stage != OPTIMIZER:
            self.stage = stage
            stack[depth] = OTHER  # the closure's own code until its backward ends
        return depth

    def pop(self, depth, now=None):
        if now is None:
            now = self.clock()
        stage = self.stage
        self.acc[stage] += now - self.mark
        self.mark = self.last_exit = now
        stack = self.stack
        if depth < len(stack):
            self.stage = stack[depth]
            del stack[depth:]
            if self.device is not None and self.stage != stage:
                self.device.end(stage, now)
            if stage == BACKWARD and self.in_optimizer and self.stage == OTHER:
                self.stage = OPTIMIZER
        return now

    def sync(self, ns):
        """A blocking read of a scalar took `ns`."""
        self.syncs += 1
        self.sync_ns += ns
