"""The probe of one process: its hooks, its loop, and what it sends."""

import atexit
import json
import os
import sys
import time

import torch

from . import cuda
from .backward import BackwardHook
from .batches import Batches
from .compiled import Compiled
from .compiling import CompileHook
from .copies import Copies
from .device import DeviceHook
from .forward import ForwardHook
from .graphs import GraphHook
from .interventions import interventions
from .loader import LoaderHook
from .loop import Loop
from .numerics import Numerics
from .optimizer import OptimizerHook
from .pauses import PauseHook
from .phases import EVALUATION
from .shapes import Shapes
from .sites import user_site
from .spool import Spool
from .standstill import Standstill
from .tensors import TensorHook
from .thread import LoopThread
from .uncompiled import leave_alone
from .window import TraceWindow

VERSION = 1
_STEP = '["step",' + ",".join(["%d"] * 15) + "]\n"
_FLUSH_NS = 50_000_000  # what waits at most that long is sent with one write: each write is a system call
_SLOW_NS = 100_000_000  # between looks at CUDA's memory


class Probe:
    """`lazy`: write nothing until this process has made a step of its own."""

    def __init__(self, directory, lazy=False):
        self.spool = Spool(directory)
        self.lazy = lazy
        self.muted = False
        self.steps = 0
        self.counted = 0  # training steps; any steps while none has trained
        self.compiles = False  # something has been handed to torch.compile
        self.cuda = False  # the user's code has initialised CUDA
        self._slow_at = self._flush_at = 0
        self._told_tape = False
        self._waiting = []  # lines, and steps as lists
        self.numerics, self.shapes, self.copies = Numerics(), Shapes(), Copies()
        self.slow = [self.numerics, self.shapes, self.copies, Compiled()]  # asked now and then
        self.loop = Loop(self.step)
        self.slow.append(LoopThread(self.loop))
        self.loop.tape.after = self.played
        self.forward = ForwardHook(self)
        self.tensors = TensorHook(self)
        self.device = DeviceHook(self)
        self.window = TraceWindow(self, _setting("STEPSCOPE_TRACE"))
        self.pauses = PauseHook(self)
        self.batches = Batches()
        self.slow += [self.pauses, self.batches]
        self.loader = LoaderHook(self)
        self.slow.append(Standstill(self))
        self.hooks = [self.loader, self.forward, BackwardHook(self), OptimizerHook(self), self.window,
                      CompileHook(self), self.pauses]
        self.interventions = interventions(self, _setting("STEPSCOPE_INTERVENE"))
        inner = [hook for hook in self.interventions if hook.innermost]
        self.hooks = inner + self.hooks + [hook for hook in self.interventions if not hook.innermost]

    def start(self):
        if not self.lazy:
            self._hello()
        try:
            leave_alone()
        except Exception as error:
            self.event("hook_off", "warning", "A compiler may look at the probe: %s" % error)
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
        self.loop.open = False

    # Records

    def write(self, text):
        """Send a line, and what waits."""
        self._waiting.append(text)
        self.flush()

    def event(self, kind, severity, text, data=None):
        self.write(json.dumps(["event", time.monotonic_ns(), kind, severity, text, data or {}]) + "\n")

    def aside(self, kind, severity, text, data):
        """An event from any thread, at once: what waits stays where it is, for it is the loop's."""
        if not (self.lazy or self.muted):
            line = json.dumps(["event", time.monotonic_ns(), kind, severity, text, data]) + "\n"
            self.spool.write(line)

    def site(self, hook):
        site = user_site()
        if site:
            self.write(json.dumps(["site", hook, site]) + "\n")

    def step(self, step):
        """A finished step of the loop. Short steps are sent several at a time."""
        self._waiting.append(step)
        self.steps += 1
        if not step[-1] & EVALUATION or not self.loop.phases.backward:
            self.counted += 1
        if not step[5] or self.forward.seeking:
            self.forward.step_done(step[5], self.loop.phases.backward)
        if step[2] >= self._flush_at and not self.loop.tape.playing:
            self._due(step[2])

    def played(self, now):
        """Steps that were on the tape have been made."""
        tape = self.loop.tape
        if tape.failed is not None and not self._told_tape:
            self._told_tape = True
            self.event("hook_off", "warning", "Notes of several steps at once failed and are off: %s: %s"
                       % (type(tape.failed).__name__, tape.failed), {"hook": "tape"})
        if now >= self._flush_at:
            self._due(now)

    def _due(self, now):
        self._flush_at = now + _FLUSH_NS
        if self.lazy and not self.muted:
            self._first_of_lazy()
        self.flush()
        if now >= self._slow_at:
            self._slow_at = now + _SLOW_NS
            self._slow(now)

    def device_times(self, index, times, lags):
        self._waiting.append(json.dumps(["device", index, times, lags]) + "\n")

    def trace(self, t0, t1, name, said):
        self.write(json.dumps(["trace", t0, t1, name, said]) + "\n")

    def flush(self):
        """Send what waits, in order. A lazy process keeps it until its first step."""
        if self.lazy and not self.muted:
            del self._waiting[:-64]
            return
        waiting, self._waiting = self._waiting, []
        if not self.muted:
            self.pauses.finished(waiting)
            lines = [item if type(item) is str else _STEP % tuple(item) for item in waiting]
            self.spool.write("".join(lines))

    # CUDA and compilers come in when the user's code brings them

    def look_for_cuda(self):
        """Hook CUDA once the user's code has initialised it; we never do."""
        if self.cuda or not torch.cuda.is_initialized():
            return
        self.cuda = True
        self.write(cuda.torch_record())
        self.slow.append(cuda.Memory(self))
        self.hooks += [self.device, GraphHook(self)]
        self.device.enable()
        self.hooks[-1].enable()
        if self.compiles:
            self.loop.arrival = True
        else:
            self.hooks.append(self.tensors)
            self.tensors.enable()

    def steady(self):
        """Whether nothing waits for what the loop does next: then it may go by the tape."""
        return not (self.cuda or self.tensors.on or self.forward.seeking)

    def _slow(self, now):
        self.look_for_cuda()
        self._read(now)
        self.flush()

    def _read(self, now):
        for part in list(self.slow):
            try:
                self._waiting += part.records(now)
            except Exception as error:
                self.slow.remove(part)
                self.event("hook_off", "warning", "The %s are not read: %s: %s"
                           % (part.name, type(error).__name__, error), {"hook": part.name})

    def compile_begins(self):
        self.compiles = True
        if self.tensors in self.hooks:
            self.hooks.remove(self.tensors)
            self.tensors.disable()

    def _first_of_lazy(self):
        from torch.utils.data import get_worker_info

        if get_worker_info() is not None:
            # A loader worker whose dataset runs a model: not a loop.
            self.muted = True
            self.disable()
            return
        self.lazy = False
        waiting, self._waiting = self._waiting, []
        self._hello()
        self._waiting = waiting

    def _hello(self):
        self.write(json.dumps(["hello", {
            "version": VERSION, "pid": os.getpid(), "ppid": os.getppid(), "t": time.monotonic_ns(),
            "python": sys.version.split()[0], "argv": _argv(), "rank": _number("RANK"),
            "world": _number("WORLD_SIZE")}]) + "\n")
        self.write(cuda.torch_record())

    # The end

    def finish(self):
        """At exit: the step that is open, and a last line."""
        try:
            self.loop.tape.stop()
            self.window.finish()
            self.loop.finish()
            self.loader.deaths.look(self.loader.all(), ending=True)
            if not self.lazy:
                self.numerics.at = self.shapes.at = self.batches.at = 0
                self.pauses.end()
                if self.steps:
                    self._read(time.monotonic_ns())
                    for hook in self.interventions:
                        hook.finish()
                self.write('["bye",%s]\n' % json.dumps({"steps": self.steps}))
            self.flush()
            self.disable()
            self.muted = True
        except Exception:
            pass

    def _forked(self):
        """A child by fork has no step yet, and a file of its own if it ever makes one."""
        try:
            self.loop.tape.forget()
            self.spool.forget()
            self.spool = Spool(self.spool.directory)
            self.lazy = True
            self._waiting = []
            self.steps = self.counted = self._flush_at = 0
            for part in (self.numerics, self.shapes, self.copies):
                part.__init__()
            self.window.forked()
            self.pauses.unwatch()
            self.device.disable()
            self.loop.reset()
        except Exception:
            self.muted = True


def _setting(name):
    """A setting of ours, a JSON object; empty when absent or not one."""
    try:
        value = json.loads(os.environ.get(name) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _argv():
    return [str(a)[:4096] for a in getattr(sys, "argv", [])[:256]]


def _number(name):
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None
