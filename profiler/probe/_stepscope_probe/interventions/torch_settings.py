"""Switches of torch's that hold for the whole process: precision, cudnn's benchmark, threads."""

import torch
from torch.optim import optimizer as torch_optimizer

from .base import Intervention


def _benchmark(value):
    torch.backends.cudnn.benchmark = value


# How each is asked for, and set.
SWITCHES = {
    "matmul_precision": (lambda: torch.get_float32_matmul_precision(),
                         lambda value: torch.set_float32_matmul_precision(value)),
    "cudnn_benchmark": (lambda: torch.backends.cudnn.benchmark, _benchmark),
    "threads": (lambda: torch.get_num_threads(), lambda value: torch.set_num_threads(value)),
}


class TorchSetting(Intervention):
    """Set when torch is imported, and again at the first step of an optimizer: a program may set its own."""

    def __init__(self, probe, name, value):
        Intervention.__init__(self, probe, value)
        self.name = name
        self.ask, self.set = SWITCHES[name]
        self._handle = None
        self._stepped = False

    def install(self):
        if self.name == "cudnn_benchmark" and not torch.backends.cudnn.is_available():
            self.why = "this torch has no cuDNN"
            return
        before = self.ask()
        self.set(self.value)
        self.applied("%s is %s, it was %s" % (self.name, self.value, before), {"from": before})
        self._handle = torch_optimizer.register_optimizer_step_pre_hook(self._first)

    def remove(self):
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _first(self, optimizer, args, kwargs):
        if self._stepped:  # torch goes through its hooks: this is not the time to take one away
            return
        self._stepped = True
        try:
            theirs = self.ask()
            if theirs != self.value:
                self.set(self.value)
                self.probe.event("intervention", "info", "%s is %s again, the program had set %s"
                                 % (self.name, self.value, theirs),
                                 {"setting": self.name, "value": self.value, "from": theirs})
        except Exception as error:
            self.fail(error)

    def finish(self):
        Intervention.finish(self)
        if self.done and not self.failed and self.ask() != self.value:
            self.unapplied("the program has set %s" % self.ask())
