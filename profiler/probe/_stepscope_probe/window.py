"""Windows of torch.profiler: opened and closed on the step's thread between two steps.

A window is bounded by steps, by seconds and by the memory that its records take, and a
loop that stands still while it is open ends it. When no boundary comes in time, a watcher
has the main thread close it. Facts that shape this: the profiler returns normally when it
cannot write, ends the process when a handler of its raises or when an outer of two nested
profilers exports. So there is no handler, never a second profiler, and each file is looked
at.
"""

import _thread
import contextlib
import os
import time

import torch
from torch.autograd import profiler as autograd_profiler

from .hook import Hook
from .kick import Kick
from .loop import NEVER
from .memory import Budget
from .phases import PROFILED
from .standstill import LONG, least_s, usual_of

_LOOK_NS = 250_000_000  # between looks for `trace_now`
_ASKED = 10  # times, that the main thread is called out of its wait
_GROWTH = 512 << 20  # bytes that the records of a window may take


class TraceWindow(Hook):
    name = "trace"

    def __init__(self, probe, plan):
        Hook.__init__(self, probe)
        self.steps = int(plan.get("steps") or 8)
        self.max_seconds = float(plan.get("max_seconds") or 20)
        self.every_ns = int(float(plan.get("every_seconds") or 0) * 1e9)
        self.still_ns = int(least_s() * 1e9)
        self.growth = int(plan.get("max_bytes") or _GROWTH)
        self.start = int(plan["start_step"]) if "start_step" in plan else None  # training steps before it
        self.profile = None
        self._request = os.path.join(probe.spool.directory, "trace_now")
        self._seen = _signature(self._request)
        self._next_look = self._again_at = 0
        self._kick = Kick(self._out_of_bounds)
        self._number = 0

    def install(self):
        self.loop.between = self.boundary
        self.loop.between_at = 0

    def remove(self):
        self.loop.between_at = NEVER
        if self.profile is not None:
            self._close("the probe was switched off")

    def boundary(self, now):
        """Between two steps, on the step's thread. True when it took time."""
        try:
            if self.profile is not None:
                self._continue(now)
            elif not self._due(now):
                self.loop.between_at = 0 if self.start is not None else self._next_look
                return False
            if self.profile is None and self._due(now):
                self._open()
            self.loop.between_at = 0
            return True
        except Exception as error:
            self.fail(error)
            return False

    def _due(self, now):
        if self.start is not None and self.probe.counted >= self.start:
            return True
        if now >= self._next_look:
            self._next_look = now + _LOOK_NS
            signature = _signature(self._request)
            if signature != self._seen:
                self._seen = signature
                self.steps = _steps_wanted(self._request, self.steps)
                self.start = 0
                return True
            if self._again_at and now >= self._again_at:
                self.start = 0
                return True
        return False

    # Open, step by step, closed

    def _open(self):
        if autograd_profiler._is_profiler_enabled or torch._C._autograd._profiler_enabled():
            return  # the user's own; another look at the next boundary
        self.start, self._again_at = None, 0
        self._budget = Budget(self.growth)
        self._t0 = time.monotonic_ns()
        self._first = self.loop.index
        self.profile = torch.profiler._KinetoProfile(activities=_activities(), record_shapes=True,
                                                     experimental_config=_config())
        self._mark = None
        self._still_for = 0
        self._thread = _thread.get_ident()
        self._kick.listen()
        self.patch(autograd_profiler.profile, "_prepare_trace", self._yielding())
        self._own = True
        try:
            with _quiet():
                self.profile.start()
        finally:
            self._own = False
        self.loop.flags |= PROFILED
        self._next_mark()
        self._number += 1
        _thread.start_new_thread(self._watch, (self._number,))

    def _next_mark(self):
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
        self._mark = autograd_profiler.record_function("ProfilerStep#%d" % self.loop.index)
        self._mark.__enter__()
        self._at = time.monotonic_ns()

    def _continue(self, now):
        made = self.loop.index - self._first
        reason = self._exceeded(now)
        if made >= self.steps or reason:
            self._close(reason)
        else:
            self._next_mark()

    def _exceeded(self, now):
        if self._still_for:
            return "no step for %d s: the window was closed" % (self._still_for // 1_000_000_000)
        if now - self._t0 > self.max_seconds * 1e9:
            return "the window ended after %d s" % self.max_seconds
        return "memory" if self._budget.exceeded() else ""

    def _close(self, note):
        """End the window, write its trace, and say what became of it."""
        profile, self.profile = self.profile, None
        made = self.loop.index - self._first
        Hook.remove(self)
        self._kick.deafen()
        self.loop.flags &= ~PROFILED
        self.loop.step_flags |= PROFILED  # when it ends inside a step
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
        try:
            profile.stop()
        except MemoryError:
            note = "memory"
        t1 = time.monotonic_ns()
        if self.every_ns:
            self._again_at = t1 + self.every_ns
        if note == "memory":
            self.probe.event("trace_abandoned", "warning", "A profiler window was given up after %d steps: "
                             "its records took too much memory" % made, {"steps": made})
            return
        if made < self.steps and not note:
            note = "the run ended after %d of %d steps" % (made, self.steps)
        name = "%d.%d.trace.json" % (os.getpid(), self._number)
        path = os.path.join(self.probe.spool.directory, name)
        try:
            profile.export_chrome_trace(path)
        except Exception as error:
            note = "export failed: %s" % error
        size, valid = check(path)
        self.probe.trace(self._t0, t1, name, {"steps": [self._first, self.loop.index - 1], "size": size,
                                              "valid": valid, "note": note})

    # Others

    def _yielding(self):
        hook, original = self, autograd_profiler.profile._prepare_trace

        def _prepare_trace(self):
            if not hook._own and hook.profile is not None and _thread.get_ident() == hook._thread:
                try:
                    hook.probe.event("profiler_yielded", "info",
                                     "The script's own profiler starts: ours has ended first", {})
                    hook._close("ended early: the script's own profiler started")
                except Exception as error:
                    hook.fail(error)
            return original(self)

        return _prepare_trace

    def _watch(self, number):
        """While the window is open: ask the main thread to close it once it goes out of bounds."""
        asked = 0
        while asked < _ASKED:
            time.sleep(0.2)
            if self.profile is None or self._number != number:
                return
            now = time.monotonic_ns()
            if asked:
                self._kick.again()
            elif self._stands_still(now) or self._exceeded(now - 1_000_000_000):
                self._kick.send()
            else:
                continue
            asked += 1

    def _stands_still(self, now):
        """Whether no step has ended for far too long; if so, told at once, whatever becomes of the window."""
        took = now - self._at
        if self.profile is None or took < max(self.still_ns, LONG * (usual_of(self.probe) or 0)):
            return False
        self._still_for = took
        self.every_ns = self._again_at = 0  # not again in this process, unless somebody asks for it
        self.probe.aside("trace_still", "warning", "No step for %d s while a profiler window is open: it is "
                         "closed. Should it come again, record without --trace-steps and --trace-every: "
                         "stages need no profiler" % (took // 1_000_000_000),
                         {"seconds": took / 1e9, "steps": self.loop.index - self._first})
        return True

    def _out_of_bounds(self):
        try:
            if self.profile is not None and _thread.get_ident() == self._thread:
                self._close(self._exceeded(time.monotonic_ns()) or "the window ended late")
        except Exception as error:
            self.fail(error)

    def forked(self):
        """In a forked child: the window is the parent's."""
        self.profile = self._mark = self.start = None
        self._kick.deafen()

    def finish(self):
        """At exit, on the thread that exits."""
        if self.profile is not None and _thread.get_ident() == self._thread:
            self._close("")
        elif self.start is not None:
            n = self.probe.counted
            self.probe.event("trace_incomplete", "warning", "No profiler window: run ended after %d steps, "
                             "%d needed" % (n, self.start + self.steps), {"steps": n})


@contextlib.contextmanager
def _quiet():
    """Kineto writes notes to the script's stderr unless told otherwise when it is first used."""
    told = "KINETO_LOG_LEVEL" in os.environ
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    try:
        yield
    finally:
        if not told:
            del os.environ["KINETO_LOG_LEVEL"]


def check(path):
    """Size of a trace in bytes, and whether it begins and ends as one."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(64).lstrip()
            file.seek(max(0, size - 64))
            tail = file.read().rstrip()
    except OSError:
        return 0, False
    return size, size > 2 and head[:1] == b"{" and tail[-1:] == b"}"


def _activities():
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_initialized():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    return kinds


def _config():
    """With CUDA, synchronisations are recorded where the profiler knows how to."""
    if torch.cuda.is_initialized():
        try:
            return torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
        except (AttributeError, TypeError):
            pass
    return None


def _signature(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def _steps_wanted(path, default):
    try:
        with open(path) as file:
            return max(1, int(file.read(16)))
    except (OSError, ValueError):
        return default
