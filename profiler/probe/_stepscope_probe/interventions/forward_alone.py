"""Forward alone: backward and the optimizers do nothing.

The first step is whole: a loop that looks at gradients finds some, and torch's
optimizers have their state. Asking for gradients (`autograd.grad`) is the loop's own
computing and goes on. A closure handed to an optimizer is called once.
"""

import functools

import torch
from torch.optim import optimizer as torch_optimizer

from ..backward import places
from ..hook import dynamo_compiles, hide_frames
from .base import Intervention

_PATIENCE = 8  # backwards without an optimizer of torch's


class ForwardAlone(Intervention):
    name = "forward_only"
    why = "no backward was called after the first step"
    innermost = True  # a backward is still seen, as one that takes no time

    def __init__(self, probe, value):
        Intervention.__init__(self, probe, value)
        self.begun = False
        self.backwards = 0
        self._wraps = False

    def install(self):
        wrapped = {}
        for owner, attribute in places():
            original = getattr(owner, attribute)
            if original not in wrapped:
                wrapped[original] = self._backward(original, attribute)
            self.patch(owner, attribute, wrapped[original])
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        # Of gradients that are not there they would say that something is wrong.
        for name in ("step", "unscale_", "update"):
            self.patch(scaler, name, self._scaling(getattr(scaler, name), name))
        if not self._wraps:
            self._wraps = True
            self._wrap_steps()

    def skips(self):
        return self.on and self.begun and not self.failed

    def _backward(self, original, attribute):
        hook = self

        def run_backward(*args, **kwargs):
            accumulates = kwargs.get("accumulate_grad", True) and attribute != "grad"
            if accumulates and hook.skips():
                hook.skipped()
                return ()
            hook.backwards += 1
            if hook.backwards > _PATIENCE:
                hook.begun = True
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        return run_backward

    def skipped(self):
        try:
            self.applied("Backward and optimizers do nothing")
        except Exception as error:
            self.fail(error)

    def _scaling(self, original, name):
        hook = self

        @functools.wraps(original)
        def scaling(self, *args, **kwargs):
            try:
                if not hook.skips():
                    return original(self, *args, **kwargs)
                return args[0].step(*args[1:], **kwargs) if name == "step" else None
            except BaseException as error:
                hide_frames(error)
                raise

        return scaling

    def _wrap_steps(self):
        """For good, as the probe's own: a class keeps the `step` it was given."""
        original = torch_optimizer.Optimizer.profile_hook_step

        @functools.wraps(original)
        def profile_hook_step(func):
            return original(self._stepping(func))

        torch_optimizer.Optimizer.profile_hook_step = staticmethod(profile_hook_step)

    def _stepping(self, step):
        hook, is_compiling = self, dynamo_compiles

        @functools.wraps(step)
        def call(*args, **kwargs):
            if is_compiling() or not hook.skips():
                try:
                    value = step(*args, **kwargs)
                except BaseException as error:
                    hide_frames(error)
                    raise
                if not is_compiling():
                    hook.begun = True
                return value
            closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
            if not callable(closure):
                return None
            with torch.enable_grad():
                return closure()

        return call
