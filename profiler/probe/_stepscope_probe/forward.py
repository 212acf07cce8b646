"""Forward: calls of root modules, discovered in the first steps; after that only their classes are wrapped.

While discovering, `Module.__call__` is patched, but only until an outermost call begins:
inside it the original is back, so that submodules cost nothing and a compiler that starts
there sees torch as it is.
"""

import weakref

import torch

from .hook import Hook, dynamo_compiles, hide_frames
from .tape import FORWARD, INFERENCE

_STEPS = 2  # steps of discovery
_PATIENCE = 16  # steps at most, while backward runs but no optimizer has stepped
_ROUNDS = 20  # of discovery in a process


class ForwardHook(Hook):
    name = "forward"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self.roots = {}  # id: reference to a root module
        self._candidates = {}  # id: reference to a module called outermost that has parameters
        self._owned = set()  # ids of the parameters of the optimizers that stepped
        self._wrapped = set()
        self.seeking = False
        self._steps = self._rounds = self._without = 0
        self._optimizers = {}  # those seen: id, reference
        self.optimizer = _nobody  # a reference to the last one
        self._call = torch.nn.Module.__dict__["__call__"]
        self._seek_call = self._make_seeker()

    def install(self):
        if self.roots:
            self._wrap_roots()
        else:
            self._seek()

    def remove(self):
        self._stop_seeking()
        if self.probe.compiles:
            # A compiler may have looked through our wrappers: without them it would start over.
            self.roots = {}
        else:
            self._wrapped = set()
            Hook.remove(self)

    # Discovery

    def _seek(self):
        if self._rounds < _ROUNDS and not self.seeking and not self.failed:
            self.loop.tape.stop()
            self._rounds += 1
            self._steps = 0
            self._candidates = {}
            self.seeking = True
            torch.nn.Module.__call__ = self._seek_call

    def _stop_seeking(self):
        self.seeking = False
        self.original_call()

    def original_call(self):
        """Put torch's own `Module.__call__` back. `seek_again` undoes it."""
        if torch.nn.Module.__dict__.get("__call__") is self._seek_call:
            torch.nn.Module.__call__ = self._call

    def outermost(self):
        return torch.nn.Module.__dict__.get("__call__") is self._seek_call

    def seek_again(self):
        if self.seeking and torch.nn.Module.__dict__.get("__call__") is self._call:
            torch.nn.Module.__call__ = self._seek_call

    def _make_seeker(self):
        hook, original = self, self._call
        is_compiling = dynamo_compiles

        def __call__(self, *args, **kwargs):
            # A bound method keeps us: torch.compile takes one of the model when it is made.
            if is_compiling() or not hook.outermost():
                return original(self, *args, **kwargs)
            try:
                return hook.seek_through(original, self, args, kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        __call__.stepscope = True
        return __call__

    def seek_through(self, original, module, args, kwargs):
        """An outermost call while discovering."""
        depth = None
        try:
            self.original_call()
            depth = self.candidate(module)
        except Exception as error:
            self.fail(error)
        try:
            return original(module, *args, **kwargs)
        finally:
            if depth is not None:
                self.loop.tape.leave(depth, self)
            self.seek_again()

    def candidate(self, module):
        if next(module.parameters(), None) is None:
            return None  # a loss or a transform
        self.probe.look_for_cuda()
        self.loop.tape.stop()
        depth = self.loop.forward_enter(module.training or torch.is_grad_enabled())
        if depth is not None:
            self.probe.numerics.called()
            self._candidates[id(module)] = weakref.ref(module)
            self.site()
        return depth

    def optimizer_stepped(self, optimizer):
        """The roots own the optimizer's parameters; an optimizer not seen before may bring another model."""
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)
            self._seek()
        self.optimizer = self._optimizers[id(optimizer)]
        if self.seeking:
            for group in optimizer.param_groups:
                self._owned.update(map(id, group["params"]))

    def step_done(self, forwards, trained):
        """After each step that was used: conclude the discovery, or begin another."""
        if self.seeking and not self._candidates:
            return  # a compiled function may hide the model
        if self.seeking:
            self._steps += 1
            if self._steps >= _PATIENCE or (self._steps >= _STEPS and (self._owned or not trained)):
                self._conclude()
        elif not forwards:
            self._without += 1
            if self._without >= 2:  # a model that was not there before
                self._without = 0
                self._seek()
        else:
            self._without = 0

    def _conclude(self):
        self._stop_seeking()
        modules = [m for m in (ref() for ref in self._candidates.values()) if m is not None]
        owners = [m for m in modules if any(id(p) in self._owned for p in m.parameters())]
        known = [m for m in (ref() for ref in self.roots.values()) if m is not None]
        self.roots = {id(m): weakref.ref(m) for m in known + (owners or modules)}
        self._candidates = {}
        self._owned = set()
        self._wrap_roots()
        self.probe.numerics.models(known + (owners or modules))

    # Roots

    def _wrap_roots(self):
        for ref in self.roots.values():
            module = ref()
            if module is not None and type(module) not in self._wrapped:
                self._wrapped.add(type(module))
                self._wrap(type(module))

    def _wrap(self, cls):
        hook, loop, tape = self, self.loop, self.loop.tape
        original = cls.__call__
        is_compiling = dynamo_compiles
        is_grad_enabled = torch.is_grad_enabled

        def __call__(self, *args, **kwargs):
            if is_compiling():
                return original(self, *args, **kwargs)
            root, depth, seek = hook.roots.get(id(self)), None, False
            if root is None or root() is not self:
                seek = hook.seeking and hook.outermost()
            else:
                try:
                    trains = self.training or is_grad_enabled()
                    depth = tape.enter(FORWARD if trains else INFERENCE) or loop.forward_enter(trains)
                except Exception as error:
                    hook.fail(error)
            try:
                if seek:
                    return hook.seek_through(original, self, args, kwargs)
                return original(self, *args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise
            finally:
                if depth is not None:
                    tape.leave(depth, hook)

        self.patch(cls, "__call__", __call__)


def _nobody():
    return None
