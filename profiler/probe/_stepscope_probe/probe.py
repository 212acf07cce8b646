"""The probe of one process: its hooks, its loop, and what it sends."""

import atexit
import json
import os
import sys
import time

import torch

from .backward import BackwardHook
from .forward import ForwardHook
from .loader import LoaderHook
from .loop import Loop
from .optimizer import OptimizerHook
from .sites import user_site
from .spool import Spool

VERSION = 1
_STEP = ('["step",' + ",".join(["%d"] * 15) + "]\n")


class Probe:
    """`lazy`: write nothing until this process has made a step of its own."""

    def __init__(self, directory, lazy=False):
        self.spool = Spool(directory)
        self.lazy = lazy
        self.muted = False
        self.steps = 0
        self._waiting = []  # records made before a lazy process's first step
        self.loop = Loop(self.step)
        self.forward = ForwardHook(self)
        self.loader = LoaderHook(self)
        self.hooks = [self.loader, self.forward, BackwardHook(self), OptimizerHook(self)]
        self._forwards_seen = 0

    def start(self):
        if not self.lazy:
            self._hello()
        self.enable()
        atexit.register(self.finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def enable(self):
        """Install every hook."""
        for hook in self.hooks:
            hook.enable()

    def disable(self):
        """Remove every hook; `enable` puts them back."""
        for hook in self.hooks:
            hook.disable()

    # Records

    def write(self, text):
        if self.muted:
            return
        if self.lazy:
            self._waiting.append(text)
            del self._waiting[:-64]
        else:
            self.spool.write(text)

    def event(self, kind, severity, text, data=None):
        self.write(json.dumps(["event", time.monotonic_ns(), kind, severity, text, data or {}]) + "\n")

    def site(self, hook):
        site = user_site()
        if site:
            self.write(json.dumps(["site", hook, site]) + "\n")

    def step(self, step):
        """A finished step of the loop."""
        if self.lazy and not self.muted:
            self._first_of_lazy()
        self.write(_STEP % tuple(step))
        self.steps += 1
        self.forward.step_done(step[5], self.loop.ever_backward)

    def optimizer_stepped(self, optimizer):
        self.forward.optimizer_stepped(optimizer)

    def _first_of_lazy(self):
        from torch.utils.data import get_worker_info

        if get_worker_info() is not None:
            # A loader worker whose dataset runs a model: not a loop.
            self.muted = True
            self.disable()
            return
        self.lazy = False
        self._hello()
        for text in self._waiting:
            self.spool.write(text)
        self._waiting = []

    def _hello(self):
        self.write(json.dumps(["hello", {
            "version": VERSION, "pid": os.getpid(), "ppid": os.getppid(), "t": time.monotonic_ns(),
            "python": sys.version.split()[0], "argv": _argv(), "rank": _number("RANK"),
            "world": _number("WORLD_SIZE")}]) + "\n")
        self.write(json.dumps(["torch", {"version": str(torch.__version__), "cuda": torch.version.cuda,
                                         "device_count": None, "uuid": {}}]) + "\n")

    # The end

    def finish(self):
        """At exit: the step that is open, and a last line."""
        try:
            self.loop.finish()
            if not self.lazy:
                self.write('["bye",%s]\n' % json.dumps({"steps": self.steps}))
            self.disable()
            self.muted = True
        except Exception:
            pass

    def _forked(self):
        """A child by fork has no step yet, and a file of its own if it ever makes one."""
        try:
            self.spool.forget()
            self.spool = Spool(self.spool.directory)
            self.lazy = True
            self._waiting = []
            self.steps = 0
            self.loop.reset()
        except Exception:
            self.muted = True


def _argv():
    return [str(a)[:4096] for a in getattr(sys, "argv", [])[:256]]


def _number(name):
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None
