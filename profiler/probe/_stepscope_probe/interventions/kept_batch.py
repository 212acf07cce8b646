"""The first batch again and again: what the loop takes when input costs nothing.

A loader is asked until it is known to be the loop's, which is after the first backward
that follows a batch of it. From then on every batch is its first one, as many times as
the loader would have given one. What the loop does to a batch does not come back: it
gets new containers each time, and new tensors over the same memory, as long as nobody
has written into it.
"""

import copy
import weakref
from collections import UserDict

import torch

from ..hook import hide_frames
from .base import LoopIntervention

_DEEPEST = 8  # containers in each other
_ITERABLE = 1  # torch's number for a dataset without indices, whose sampler has no end


class KeptBatch(LoopIntervention):
    name = "cached_batch"

    def __init__(self, probe, value, inference=False):
        LoopIntervention.__init__(self, probe, value, inference)
        self.kept = weakref.WeakKeyDictionary()  # Loader: Kept
        self.endless = False

    def install(self):
        from torch.utils.data import dataloader as module

        for cls in (module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter):
            self.patch(cls, "_next_data", self._instead(cls._next_data))
        self._leave_workers_alone(module)

    def _instead(self, original):
        hook = self

        def _next_data(self):
            kept = hook.ready(self)
            if kept is not None:
                return hook.give(self, kept)
            try:
                batch = original(self)
            except BaseException as error:
                hide_frames(error)
                raise
            hook.keep(self, batch)
            return batch

        return _next_data

    def _leave_workers_alone(self, module):
        """A new epoch over a kept batch starts no workers, and gives those that persist nothing to do."""
        hook, base, several = self, module._BaseDataLoaderIter, module._MultiProcessingDataLoaderIter
        make, reset = module.DataLoader._get_iterator, several._reset

        class KeptIter(base):
            """Has nothing to ask. It must go on when the hook has failed."""

            def __init__(self, loader, kept):
                base.__init__(self, loader)
                self.kept = kept

            def _next_data(self):
                return hook.give(self, self.kept)

        def _get_iterator(self):
            kept = hook.ready(self)
            try:
                return make(self) if kept is None else KeptIter(self, kept)
            except BaseException as error:
                hide_frames(error)
                raise

        def _reset(self, loader, first_iter=False):
            call = reset if first_iter or hook.ready(self) is None else base._reset
            try:
                return call(self, loader, first_iter)
            except BaseException as error:
                hide_frames(error)
                raise

        self.patch(module.DataLoader, "_get_iterator", _get_iterator)
        self.patch(several, "_reset", _reset)

    def ready(self, iterator):
        """What is kept of the loader of an iterator (or a DataLoader), once its batches are the loop's."""
        try:
            loader = None if self.failed else self.probe.loader.known(iterator._index_sampler)
            return self.kept.get(loader) if loader is not None and self.counts(loader) else None
        except Exception as error:
            self.fail(error)
            return None

    def keep(self, iterator, batch):
        """The first batch of each loader, before the loop has it."""
        try:
            loader = None if self.failed else self.probe.loader.known(iterator._index_sampler)
            if loader is not None and loader not in self.kept:
                self.kept[loader] = self.make(batch)
        except Exception as error:
            self.fail(error)

    def make(self, batch):
        return Kept(batch)

    def give(self, iterator, kept):
        """The kept batch, or the end of the epoch."""
        try:
            total = length(iterator)
            self.begin(total)
        except Exception as error:
            self.fail(error)
            total = None
        if total is not None and iterator._num_yielded >= total:
            raise StopIteration
        try:
            return kept.give()
        except Exception as error:
            self.fail(error)
            return kept.batch

    def begin(self, total):
        self.applied("The loop gets its loader's first batch again and again")
        if total is None and not self.endless:
            self.endless = True
            self.probe.event("intervention_endless", "warning", "The length of the loader is not known: "
                             "its first batch is given without end", {"setting": self.name})


class Kept:
    """A batch. `given(tensor, number)` hears of each tensor that goes out, by its place in the batch."""

    def __init__(self, batch, given=None):
        self.given = given
        self.tensors = []  # as they came
        self.shared = []  # what goes out and its version, while nobody has written into it
        self.batch = rebuilt(batch, self._keep)  # with tensors of ours
        self._number = {id(tensor): number for number, tensor in enumerate(self.tensors)}

    def _keep(self, tensor):
        self.tensors.append(like(tensor))
        self.shared.append(None)
        return self.tensors[-1]

    def give(self):
        return rebuilt(self.batch, self._fresh)

    def _fresh(self, tensor):
        number = self._number[id(tensor)]
        shared = self.shared[number]
        if shared is None or shared[0]._version != shared[1]:
            made = like(tensor)
            shared = self.shared[number] = made, made._version
        fresh = alias(shared[0])
        if self.given is not None:
            self.given(fresh, number)
        return fresh


def like(tensor):
    """A copy in memory of the same kind, whose version can be asked for even in inference mode."""
    with torch.inference_mode(False), torch.no_grad():
        made = tensor.detach().clone()
        return _as(made.pin_memory() if tensor.is_pinned() else made, tensor)


def alias(tensor):
    """A new tensor over the same memory: what is set on it (a gradient) stays with it."""
    return _as(tensor.detach(), tensor)


def _as(made, tensor):
    if tensor.__dict__:  # of a class of the user's
        made.__dict__.update(tensor.__dict__)
    return made


def rebuilt(value, leaf, depth=_DEEPEST):
    """The same batch in new containers, its tensors replaced by `leaf(tensor)`."""
    if isinstance(value, torch.Tensor):
        return leaf(value)
    kind = type(value)
    if kind in (str, int, float, bool, bytes, type(None)) or not depth or isinstance(value, type):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[rebuilt(part, leaf, depth - 1) for part in value])
    if kind in (list, tuple):
        return kind([rebuilt(part, leaf, depth - 1) for part in value])
    if isinstance(value, (dict, UserDict, list)):
        made = copy.copy(value)
        for key in list(value) if not isinstance(value, list) else range(len(value)):
            made[key] = rebuilt(value[key], leaf, depth - 1)
        return made
    if getattr(value, "__dict__", None) and not callable(value):  # a batch of the user's own making
        made = copy.copy(value)
        for name, part in list(vars(made).items()):
            made.__dict__[name] = rebuilt(part, leaf, depth - 1)
        return made
    return value


def length(iterator):
    """How many batches an epoch of its loader has, None where that is not known."""
    try:
        if iterator._dataset_kind != _ITERABLE:
            return len(iterator)
        samples = len(iterator._dataset)
    except (TypeError, NotImplementedError, AttributeError):
        return None
    sampler = iterator._index_sampler
    size = getattr(sampler, "batch_size", None) or 1
    return samples // size if getattr(sampler, "drop_last", False) else -(-samples // size)
