"""Backward: the one function through which Tensor.backward, autograd.backward and autograd.grad run.

It is a function of a module, not a method of Tensor, so that a compiler that looks at
tensors meets nothing of ours.
"""

import torch

from .hook import Hook, hide_frames
from .tape import BACKWARD


class BackwardHook(Hook):
    name = "backward"

    def install(self):
        hook, loop = self, self.loop
        tape = loop.tape
        probe, active = self.probe, _active_compilation()

        def wrap(original):
            def run_backward(*args, **kwargs):
                depth = None
                try:
                    if not probe.compiles or active() is None:
                        depth = tape.enter(BACKWARD)
                        if not depth:
                            depth = loop.backward_enter()
                            hook.site()
                except Exception as error:
                    hook.fail(error)
                try:
                    return original(*args, **kwargs)
                except BaseException as error:
                    hide_frames(error)
                    raise
                finally:
                    if depth is not None:
                        tape.leave(depth, hook)

            return run_backward

        wrapped = {}
        for owner, attribute in places():
            original = getattr(owner, attribute)
            if original not in wrapped:
                wrapped[original] = wrap(original)
            self.patch(owner, attribute, wrapped[original])


def places():
    """Owner and name of what every backward runs through."""
    if hasattr(torch.autograd, "_engine_run_backward"):
        name = "_engine_run_backward"
        return [(torch.autograd, name), (torch.autograd.graph, name)]
    return [(torch.autograd, "backward"), (torch.autograd, "grad")]  # before torch 2.3


def _active_compilation():
    """A function that returns what torch compiles on this thread, or None; compiling runs backward too."""
    try:
        from torch._guards import CompileContext

        return CompileContext.try_get
    except (ImportError, AttributeError):
        return _nothing


def _nothing():
    return None
