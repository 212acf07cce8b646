"""Which finished steps train and which evaluate, told in order once it is known.

A loader trains when a backward follows one of its batches. Before that is known, a few
steps are held back: they are flagged as evaluation when the loader ends without a
backward, and not when one comes (accumulated gradients). Steps found by forward alone
are held too: a backward makes them one step, and a loader that begins shows that they
were trials of a model before the loop.
"""

from collections import deque

EVALUATION, EPOCH_FIRST, PROFILED, PARTIAL = 1, 2, 4, 8

_HELD = 8
_HELD_NS = 10_000_000_000


class Loader:
    """What is known of one loader: whether it trains, and the sizes of batches not yet used."""

    def __init__(self):
        self.train = False
        self.told = None  # `train` as last sent
        self.settings = {}
        self.sizes = deque(maxlen=4096)
        self.background = False
        self.workers = []  # processes of the iterator that is in use
        self.begun = False  # a batch was asked for
        self.twins = None  # looks at the first batches


def used(loaders, cycles):
    """Samples of the batches that a step of so many forwards after a backward used, matched by order."""
    if len(loaders) == 1 and cycles <= 1:
        return loaders[0].sizes.popleft() if loaders[0].sizes else 0
    size = 0
    for loader in loaders:
        sizes = loader.sizes
        for _ in range(cycles or 1):
            if sizes:
                n = sizes.popleft()
                if loader is loaders[0]:
                    size += n
    return size


class Phases:
    """`sink(step)` takes each finished step. A step is the list of numbers that is sent."""

    def __init__(self, sink):
        self.sink = sink
        self.reset()

    def reset(self):
        self.held = []  # loader or None, step
        self.backward = False  # one has run in this process
        self.loader = False  # a loader is known to train

    def take(self, step, loaders):
        """A finished step, and the loaders whose batches it used."""
        if self.held and loaders and self.held[0][0] is not loaders[0]:
            self.release(EVALUATION)
        if loaders:
            if any(loader.train for loader in loaders):
                self.sink(step)
            elif self.loader:
                step[-1] |= EVALUATION
                self.sink(step)
            else:
                self._hold(loaders[0], step, EVALUATION)
        elif self.backward:
            self.sink(step)
        else:
            self._hold(None, step, 0)

    def _hold(self, loader, step, flags):
        self.held.append((loader, step))
        if len(self.held) > _HELD or step[2] - self.held[0][1][1] > _HELD_NS:
            self.release(flags)

    def release(self, flags):
        held, self.held = self.held, []
        for _, step in held:
            step[-1] |= flags
            self.sink(step)

    def loader_ended(self, loader):
        if self.held and not loader.train:
            self.release(EVALUATION)

    def trained(self, loaders):
        """A backward runs with batches of these loaders."""
        self.backward = True
        for loader in loaders:
            if not loader.train:
                loader.train = self.loader = True
        if self.held:
            self.release(0 if self.held[0][0] in loaders else EVALUATION)

    def forget(self):
        """Drop what is held. Returns the index of the first step dropped, or None."""
        held, self.held = self.held, []
        return held[0][1][0] if held else None

    def end(self):
        """The process ends."""
        if self.held:
            self.release(EVALUATION if self.held[0][0] is not None else 0)
