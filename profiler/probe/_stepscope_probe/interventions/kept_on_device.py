"""The first batch again and again, already on the device: neither input nor transfer.

The loop's own copy of each tensor of the batch to the GPU is made once; the next time it
gets what came of it. What the loop does not copy stays where it is. Methods of tensors
are not patched where anything is compiled: there the whole batch is put on the device of
the model, and a loop that needs a part of it on the CPU will fail, which is told as its end.
"""

from collections import deque

import torch

from ..hook import Hook, hide_frames
from ..tensors import _always, _goes_to_gpu, _Method
from .kept_batch import Kept, KeptBatch, alias, like, rebuilt

_AHEAD = 64  # tensors given out and remembered: prefetching loops copy them some steps later


class DeviceBatch(KeptBatch):
    name = "device_batch"

    def __init__(self, probe, value, inference=False):
        KeptBatch.__init__(self, probe, value, inference)
        self.copies = CopiesOnce(probe)
        self.where = None  # "cpu", "copies" or "device", once known

    def make(self, batch):
        return Kept(batch, self.copies.given)

    def give(self, iterator, kept):
        try:
            self._place(kept)
        except Exception as error:
            self.fail(error)
        return KeptBatch.give(self, iterator, kept)

    def begin(self, total):
        if self.where == "cpu":
            self.applied("The loop gets its loader's first batch again and again; on the CPU there is no "
                         "device to keep it on", {"on": "cpu"})
        KeptBatch.begin(self, total)

    def _place(self, kept):
        """Choose the way, at the first batch that is given again."""
        if self.where is None:
            self.where = "copies" if torch.cuda.is_initialized() else "cpu"
            if self.where == "copies" and not self.probe.compiles:
                self.copies.enable()
        if self.where != "cpu" and self.probe.compiles and kept.given is not None:
            self.where = "device"
            self.copies.disable()
            device = self._device()
            kept.__init__(rebuilt(kept.batch, lambda tensor: tensor.to(device)))

    def _device(self):
        for reference in self.probe.forward.roots.values():
            module = reference()
            parameter = next(module.parameters(), None) if module is not None else None
            if parameter is not None:
                return parameter.device
        return torch.device("cuda", torch.cuda.current_device())

    def applied(self, text, data=None):
        if not self.done and self.where == "copies":
            data = {"on": "cuda", "by": "copies made once"}
        elif not self.done and self.where == "device":
            data = {"on": "cuda", "by": "the whole batch on the device"}
        KeptBatch.applied(self, text, data)

    def remove(self):
        self.copies.disable()
        KeptBatch.remove(self)

    def finish(self):
        KeptBatch.finish(self)
        if self.where == "copies" and not self.copies.made:
            self.unapplied("no copy of the batch itself to the device was seen")


class CopiesOnce(Hook):
    """A tensor that was given out and is copied to the GPU: what came of the first copy is given again."""

    name = "device_batch_copies"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self._given = deque(maxlen=_AHEAD)  # they must live, or their numbers would be another's
        self._numbers = {}  # id of a tensor given out: itself, number in the batch
        self._copies = {}  # number and arguments of the copy: as it came, what goes out, its version
        self.made = 0

    def given(self, tensor, number):
        if len(self._given) == self._given.maxlen:
            self._numbers.pop(id(self._given[0]), None)
        self._given.append(tensor)
        self._numbers[id(tensor)] = tensor, number

    def install(self):
        tensor = torch.Tensor
        for name, goes in (("to", _goes_to_gpu), ("cuda", _always)):
            original = getattr(tensor, name)
            self.patch(tensor, name, _Method(original, self._once(name, original, goes)))
        self.patch(tensor, "copy_", _Method(tensor.copy_, self._filling(tensor.copy_, tensor.to)))

    def _once(self, name, original, goes):
        hook = self

        def method(self, *args, **kwargs):
            try:
                if id(self) in hook._numbers and goes(args, kwargs):
                    return hook.copy(name, original, self, args, kwargs)
                return original(self, *args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        return method

    def _filling(self, original, to):
        hook = self

        def copy_(self, src, *args, **kwargs):
            try:
                if self.is_cuda and id(src) in hook._numbers:
                    src = hook.copy("to", to, src, (self.device,), {})
                return original(self, src, *args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        return copy_

    def copy(self, name, original, tensor, args, kwargs):
        """What the copy gives: the first time by making it."""
        key = found = None
        try:
            known, number = self._numbers[id(tensor)]
            if known is tensor:
                key = number, name, args, tuple(sorted(kwargs.items()))
                found = self._copies.get(key)
        except Exception:  # an argument that cannot be a key: the copy is made
            key = None
        if key is None:
            return original(tensor, *args, **kwargs)
        if found is None:
            result = original(tensor, *args, **kwargs)
            self.made += 1
            self._copies[key] = [like(result), result, result._version]
            return alias(result)
        if found[1]._version != found[2]:
            found[1] = like(found[0])
            found[2] = found[1]._version
        return alias(found[1])
