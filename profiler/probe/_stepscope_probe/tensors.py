"""Copies of a batch to the GPU, and blocking reads of scalars, by methods of Tensor.

Only where CUDA is in use, and never once anything has been compiled: then h2d is the time
from the batch's arrival to forward, and scalar reads are not counted.
"""

from _thread import get_ident
from types import MethodType

import torch

from .hook import Hook, hide_frames
from .sites import user_frame
from .stages import H2D

# Not float(): it warns, and the warning would name our line instead of the user's.
_READS = ("item", "tolist", "cpu", "__bool__")
_SITES = 20  # lines told for scalar reads


class TensorHook(Hook):
    name = "h2d"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self._seen = set()
        self._inside = False  # a read

    def install(self):
        tensor = torch.Tensor
        self._stand_in("to", self._copying(tensor.to, _goes_to_gpu))
        self._stand_in("cuda", self._copying(tensor.cuda, _always))
        self._stand_in("copy_", self._filling(tensor.copy_))
        for name in _READS:
            self._stand_in(name, self._reading(getattr(tensor, name)))
        self.loop.arrival = False

    def _stand_in(self, name, call):
        self.patch(torch.Tensor, name, _Method(getattr(torch.Tensor, name), call))

    def remove(self):
        Hook.remove(self)
        self.loop.arrival = self.failed or self.probe.compiles

    def _copying(self, original, copies):
        def method(self, *args, **kwargs):
            try:
                if not self.is_cuda:
                    return hook.copy(copies(args, kwargs), original, self, args, kwargs)
                if original is to and args and args[0] == "cpu":
                    return hook.read(original, self, args, kwargs)
                return original(self, *args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        hook, to = self, torch.Tensor.to
        return method

    def _filling(self, original):
        def copy_(self, src, *args, **kwargs):
            copies = self.is_cuda and isinstance(src, torch.Tensor) and not src.is_cuda
            try:
                return hook.copy(copies, original, self, (src, *args), kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        hook = self
        return copy_

    def _reading(self, original):
        def method(self, *args, **kwargs):
            try:
                if not self.is_cuda:
                    return original(self, *args, **kwargs)
                return hook.read(original, self, args, kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        hook = self
        return method

    def copy(self, copies, original, tensor, args, kwargs):
        """Call a copy; inside the h2d stage when it goes to the GPU on the step's thread."""
        loop = self.loop
        if not copies or loop.thread != get_ident():
            return original(tensor, *args, **kwargs)
        depth = None
        try:
            if loop.open and loop.stage != H2D:  # a subclass of Tensor comes round again
                source = args[0] if tensor.is_cuda else tensor  # copy_ is the destination's
                self.probe.copies.see(source, args, kwargs)
            depth = loop.push(H2D, loop.clock())
            self.site()
        except Exception as error:
            self.fail(error)
        try:
            return original(tensor, *args, **kwargs)
        finally:
            if depth is not None:
                self._leave(depth)

    def _leave(self, depth):
        try:
            self.loop.pop(depth)
        except Exception as error:
            self.fail(error)

    def read(self, original, tensor, args, kwargs):
        """Call a read that waits for the GPU; count it and its time on the step's thread."""
        loop = self.loop
        if self._inside:  # a subclass of Tensor comes round again
            return original(tensor, *args, **kwargs)
        self._inside = True
        t0 = loop.clock()
        try:
            value = original(tensor, *args, **kwargs)
        finally:
            self._inside = False
        try:
            if loop.thread == get_ident():
                loop.sync(loop.clock() - t0)
                self._tell_read()
        except Exception as error:
            self.fail(error)
        return value

    def _tell_read(self):
        frame = user_frame()
        if frame is not None and len(self._seen) < _SITES:
            key = (frame.f_code, frame.f_lineno)
            if key not in self._seen:
                self._seen.add(key)
                self.probe.site("sync")


class _Method:
    """Stands in for a method of Tensor and equals it.

    Subclasses of Tensor get the method handed over in `__torch_function__`, and look it up
    in tables that were made before we came.
    """

    def __init__(self, original, call):
        self.original = original
        self.call = call
        self.__name__ = original.__name__
        self.__doc__ = original.__doc__

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self.call, instance)

    def __call__(self, *args, **kwargs):
        try:
            return self.call(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def __eq__(self, other):
        return self is other or self.original == other

    def __hash__(self):
        return hash(self.original)

    def __getattr__(self, name):
        return getattr(self.original, name)


def _always(args, kwargs):
    return True


def _goes_to_gpu(args, kwargs):
    """Whether the arguments of Tensor.to name a CUDA device."""
    target = kwargs.get("device", args[0] if args else None)
    if isinstance(target, torch.device):
        return target.type == "cuda"
    if isinstance(target, str):
        return target.startswith("cuda")
    if isinstance(target, torch.Tensor):
        return target.is_cuda
    return isinstance(target, int) and not isinstance(target, bool)
