"""The loader alone: what it gives when nobody does anything with its batches.

Where the loop asks its loader for a batch, once that is known to be the loop's, the
loader is asked again and again, over as many epochs as it takes; each fetch is a step.
After so many steps the program ends, with status 0.
"""

import weakref
from _thread import get_ident

from ..hook import hide_frames
from ..stages import DATA
from .base import LoopIntervention


class LoaderAlone(LoopIntervention):
    name = "loader_only"

    def __init__(self, probe, value, inference=False):
        LoopIntervention.__init__(self, probe, value, inference)
        self.busy = False
        self._made = weakref.WeakKeyDictionary()  # iterator: how to get its DataLoader

    def install(self):
        from torch.utils.data import dataloader

        hook, base = self, dataloader._BaseDataLoaderIter
        make, fetch = base.__init__, base.__next__

        def __init__(self, loader, *args, **kwargs):
            try:
                make(self, loader, *args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise
            try:
                hook._made[self] = hook.holding(loader)
            except Exception as error:
                hook.fail(error)

        def __next__(self):
            try:
                if hook.due(self):
                    hook.run(self, fetch)
                return fetch(self)
            except BaseException as error:
                hide_frames(error)
                raise

        self.patch(base, "__init__", __init__)
        self.patch(base, "__next__", __next__)

    def holding(self, loader):
        """A loop may hold nothing but the iterator; a loader whose workers persist holds its iterator."""
        return weakref.ref(loader) if loader.persistent_workers else lambda: loader

    def due(self, iterator):
        try:
            if self.failed or self.busy:
                return False
            loader = self.probe.loader.known(iterator._index_sampler)
            if loader is None or not self.counts(loader) or self.loop.stage == DATA:
                return False
            return get_ident() == self.loop.thread
        except Exception as error:
            self.fail(error)
            return False

    def run(self, iterator, fetch):
        """Ask the loader until it is enough. Never returns; what the loader raises comes out."""
        self.busy = True
        self.applied("The loader is asked for its batches with nothing done to them")
        first = type(iterator)
        made = self._made.get(iterator)
        loader = made() if made is not None else None
        left = -1 if self.value is True else self.value
        fetched = 0  # of this epoch
        while left:
            try:
                if isinstance(iterator, first):
                    fetch(iterator)
                else:
                    next(iterator)  # the loader's class has a way of its own
            except StopIteration:
                if loader is None or not fetched:
                    self.unapplied("the loader had no more batches, and cannot be started again")
                    break
                iterator, fetched = iter(loader), 0
                continue
            fetched += 1
            left -= 1
            self._step_done()
        raise SystemExit(0)

    def _step_done(self):
        """The batch counts as used: the next fetch begins a step."""
        try:
            self.loop.tape.stop()
            self.loop.used = True
        except Exception as error:
            self.fail(error)
