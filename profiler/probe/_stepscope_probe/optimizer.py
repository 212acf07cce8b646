"""Optimizer steps, by torch's global optimizer hooks. They are counted and never are boundaries."""

from torch.optim import optimizer as torch_optimizer

from .hook import Hook, dynamo_compiles
from .tape import STEP


class OptimizerHook(Hook):
    name = "optimizer"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self._handles = []
        self._depths = []

    def install(self):
        is_compiling = dynamo_compiles
        hook, loop, depths, forward = self, self.loop, self._depths, self.probe.forward
        tape = loop.tape

        def pre(optimizer, args, kwargs):
            if is_compiling():
                return
            try:
                depths.append(tape.enter(STEP) or loop.optimizer_enter())
                if optimizer is not forward.optimizer() or forward.seeking:
                    forward.optimizer_stepped(optimizer)
                    hook.site()
            except Exception as error:
                hook.fail(error)

        def post(optimizer, args, kwargs):
            if is_compiling():
                return
            try:
                depth = depths.pop() if depths else None
                if depth is not None:
                    tape.stepped(depth)
            except Exception as error:
                hook.fail(error)

        self._handles = [torch_optimizer.register_optimizer_step_pre_hook(pre),
                         torch_optimizer.register_optimizer_step_post_hook(post)]

    def remove(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []
        del self._depths[:]
