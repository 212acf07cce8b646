"""Optimizer steps. They are counted and never are boundaries.

Torch's global optimizer hooks tell of each one, but run inside what torch itself puts
around a step, which takes time too. So the function with which torch wraps the
`step` of an optimizer's class is wrapped too, and the stage is as long as the call. An
optimizer made before us has only the hooks.
"""

import functools

from torch.optim import optimizer as torch_optimizer

from .hook import Hook, dynamo_compiles, hide_frames
from .tape import STEP


class OptimizerHook(Hook):
    name = "optimizer"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self._handles = []
        self._depths = []  # of the steps begun by a hook of torch's
        self._calls = []  # of the steps begun by the call
        self._wraps = False

    def install(self):
        is_compiling = dynamo_compiles
        hook, depths, calls, forward = self, self._depths, self._calls, self.probe.forward
        if not self._wraps:
            self._wraps = True
            self._wrap_steps()

        def pre(optimizer, args, kwargs):
            if is_compiling():
                return
            try:
                if not calls:
                    depths.append(hook.enter())
                if optimizer is not forward.optimizer() or forward.seeking:
                    forward.optimizer_stepped(optimizer)
                    hook.site()
            except Exception as error:
                hook.fail(error)

        def post(optimizer, args, kwargs):
            if not is_compiling() and not calls:
                hook.leave(depths)

        self._handles = [torch_optimizer.register_optimizer_step_pre_hook(pre),
                         torch_optimizer.register_optimizer_step_post_hook(post)]

    def remove(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []
        del self._depths[:]

    def enter(self):
        return self.loop.tape.enter(STEP) or self.loop.optimizer_enter()

    def leave(self, depths):
        try:
            depth = depths.pop() if depths else None
            if depth is not None:
                self.loop.tape.stepped(depth)
        except Exception as error:
            self.fail(error)

    def _wrap_steps(self):
        """For good: a class keeps the `step` it was given. Without the hook it passes calls on."""
        original = torch_optimizer.Optimizer.profile_hook_step

        @functools.wraps(original)
        def profile_hook_step(func):
            return self._timed(original(func))

        torch_optimizer.Optimizer.profile_hook_step = staticmethod(profile_hook_step)

    def _timed(self, step):
        is_compiling = dynamo_compiles
        hook, calls = self, self._calls

        @functools.wraps(step)
        def call(*args, **kwargs):
            if is_compiling() or not hook.on or hook.failed:
                return step(*args, **kwargs)
            try:
                calls.append(hook.enter())
            except Exception as error:
                calls.append(None)
                hook.fail(error)
            try:
                return step(*args, **kwargs)
            except BaseException as error:
                hide_frames(error)
                raise
            finally:
                hook.leave(calls)

        return call
