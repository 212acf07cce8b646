"""The wait for a batch: `_BaseDataLoaderIter.__next__`, the one place that every wrapper comes through."""

import json
import weakref

import torch

from .batches import EVERY
from .deaths import Deaths
from .hook import Hook, hide_frames
from .parts import parts_of
from .phases import Loader
from .sites import user_site
from .tape import NOTED
from .twins import Twins

_LOADERS = 64  # by the line that makes them, of which is told
_TWINS = ("The %d workers of a loader give the same data: each goes through the whole iterable dataset. "
          "Divide it among them by torch.utils.data.get_worker_info()")


class LoaderHook(Hook):
    name = "loader"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self.last = _nothing, None
        self.fetches = 0
        self.deaths = Deaths(probe)
        self._doubled = set()  # sites of loaders whose data is given twice
        self._loaders = []  # sampler of a DataLoader, its dataset (both by reference), Loader

    def install(self):
        from torch.utils.data import dataloader

        hook, loop = self, self.loop
        tape = loop.tape
        original = dataloader._BaseDataLoaderIter.__next__

        def __next__(self):
            depth = loader = None
            try:
                if not hook.failed:
                    sampler, loader = hook.last
                    if sampler() is not self._index_sampler:
                        loader = hook.loader(self)
                    first = self._num_yielded == 0
                    if first:
                        hook.begins(self, loader)
                    hook.fetches += 1
                    if not hook.fetches % EVERY and loader.train:
                        hook.probe.batches.asked(self)
                    depth = tape.fetch(loader, first) or loop.fetch_enter(loader, first)
            except Exception as error:
                hook.fail(error)
            try:
                batch = original(self)
            except BaseException as error:
                hide_frames(error)
                stopped = isinstance(error, StopIteration)
                if loader is not None and not stopped and isinstance(error, Exception):
                    hook.raised(loader, error)
                if depth is not None:
                    hook.exit(depth, loader, 0, True, stopped)
                raise
            if depth is not None:
                hook.exit(depth, loader, batch, False, False)
            elif loader is not None and loader.background:
                hook.size_of_background(loader, batch)
            return batch

        self.patch(dataloader._BaseDataLoaderIter, "__next__", __next__)

    def begins(self, iterator, loader):
        """Its first batch is asked for."""
        self.deaths.look([loader], ending=True)
        self.deaths.follow(loader, iterator)
        if not loader.begun:
            loader.begun = True
            loader.twins = Twins.of(iterator)

    def raised(self, loader, error):
        """An exception comes out of the loader: torch's own when a worker has died, or of a pipe to it."""
        try:
            if isinstance(error, (OSError, EOFError)):
                self.deaths.wait(loader)
            self.deaths.look([loader])
        except Exception as error:
            self.fail(error)

    def see_twins(self, loader, batch):
        found, workers, site = loader.twins.see(batch), loader.twins.workers, loader.settings.get("site")
        if found is not None:
            loader.twins = None
        if found and site not in self._doubled and len(self._doubled) < _LOADERS:
            self._doubled.add(site)
            self.probe.event("duplicated_data", "warning", _TWINS % workers,
                             {"workers": workers, "site": site})

    def all(self):
        """Every Loader whose DataLoader is there, or was there last."""
        return [loader for _, _, loader in self._loaders]

    def exit(self, depth, loader, batch, raised, stopped):
        loop, tape = self.loop, self.loop.tape
        try:
            if loader.twins is not None and not raised:
                self.see_twins(loader, batch)
            if stopped:
                loader.workers = []  # they end now, or are told anew at the next epoch
            if not raised and loader.train:
                self.probe.shapes.see(batch)
                if not self.fetches % EVERY:
                    self.probe.batches.got(batch)
            if depth == NOTED and not raised and tape.fetched(samples(batch)):
                return
            depth = tape.depth(depth)
            if depth is None:
                return
            if raised and not stopped:
                loop.pop(depth)
            else:
                loop.fetch_exit(depth, loader, 0 if stopped else samples(batch), stopped)
                if not stopped and self.probe.steady():
                    tape.start(loader)
            if loader.told != loader.train:
                self.tell(loader)
        except Exception as error:
            self.fail(error)

    def size_of_background(self, loader, batch):
        try:
            loader.sizes.append(samples(batch))
            if loader.train:
                self.probe.shapes.see(batch)
        except Exception as error:
            self.fail(error)

    def loader(self, iterator):
        """The Loader of an iterator: one per DataLoader, over all its epochs."""
        loader = self.known(iterator._index_sampler)
        if loader is not None:
            self.last = _reference(iterator._index_sampler), loader
            return loader
        self.probe.look_for_cuda()
        # torch tells of a dead worker wherever the loop is just then, and the script may go on
        self.deaths.look(self.all(), ending=True)
        loader = Loader()
        loader.settings = settings(iterator)
        loader.settings["site"] = user_site()
        loader.train = self._successor(iterator._dataset)
        self._loaders.append((_reference(iterator._index_sampler), _reference(iterator._dataset), loader))
        if loader.settings["site"]:
            self.site()
        return loader

    def known(self, index_sampler):
        """The Loader of the DataLoader with this sampler, None before its first batch is asked for."""
        return next((loader for sampler, _, loader in self._loaders if sampler() is index_sampler), None)

    def _successor(self, dataset):
        """Whether a DataLoader that trained on this dataset is gone: many loops make a new one each epoch."""
        gone = [entry for entry in self._loaders if entry[0]() is None]
        self._loaders = [entry for entry in self._loaders if entry[0]() is not None]
        return any(loader.train and known() is dataset for _, known, loader in gone)

    def tell(self, loader):
        """Send the loader's settings when it is first used, and when it turns out to train."""
        loader.told = loader.train
        self.probe.write("[%s,%s]\n" % ('"loader"', json.dumps(dict(loader.settings, train=loader.train))))


def _nothing():
    return _nothing


def _reference(value):
    try:
        return weakref.ref(value)
    except TypeError:  # then it is kept alive
        return lambda: value


def settings(iterator):
    """The settings that an iterator really runs with."""
    sampler = iterator._index_sampler
    return {
        "num_workers": iterator._num_workers,
        "batch_size": _int(getattr(sampler, "batch_size", None)),
        "prefetch_factor": _int(getattr(iterator, "_prefetch_factor", None)),
        "pin_memory": bool(iterator._pin_memory),
        "persistent_workers": bool(iterator._persistent_workers),
        "dataset": type(iterator._dataset).__name__,
    }


def _int(value):
    return value if isinstance(value, int) else None


def samples(batch, depth=3):
    """Length of the first dimension of the first tensor in a batch, 0 when there is none."""
    if type(batch) is list and batch:
        first = batch[0]
        if type(first) is torch.Tensor and first.dim():
            return first.shape[0]
    shape = getattr(batch, "shape", None)
    if shape is not None:
        try:
            return int(shape[0])
        except (IndexError, TypeError, ValueError):
            return 0
    parts = parts_of(batch) if depth else None
    if parts is not None:
        for part in parts:
            n = samples(part, depth - 1)
            if n:
                return n
    return 0
