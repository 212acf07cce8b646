"""Loader workers that died: which, how, and what the machine says of the reason.

Nobody is reaped here: torch looks for dead workers itself, and must find them.
"""

import os
import signal
import time

from .memory import available

_SHARED = "/dev/shm"
_GROUPS = "/sys/fs/cgroup"
_NONE = 1 << 60  # bytes; the older kind of groups tells "no limit" by a number beyond this
_DYING_S = 0.5  # that a process whose connections are closed may take to be dead on a busy machine
_LIGHTER = "fewer workers, a lower prefetch_factor or smaller samples need less"


class Deaths:
    """Of the workers of one process. `look` may be called from any thread."""

    def __init__(self, probe):
        self._probe = probe
        self._told = set()  # pids
        self._kills = None  # by the kernel for want of memory, before there were workers

    def follow(self, loader, iterator):
        """A new iterator of this loader, with the workers it has."""
        loader.workers = list(getattr(iterator, "_workers", ()))
        if loader.workers and self._kills is None:
            self._kills = memory_limit()[2]

    def wait(self, loader):
        """A connection to a worker broke: give it the moment that it may still need to be dead."""
        end = time.monotonic() + _DYING_S
        try:
            while loader.workers and time.monotonic() < end and not any(map(status, loader.workers)):
                time.sleep(0.005)
        except RuntimeError:  # torch's own, out of its handler of signals: one is dead
            pass

    def look(self, loaders, ending=False):
        """Tell of each worker that has died since the last look. Returns all the sentences.

        `ending`: the loader may have ended them itself, as it does at its end.
        """
        said = []
        for loader in loaders:
            for number, worker in enumerate(loader.workers):
                code = status(worker)
                if not code or code == -signal.SIGINT or (ending and code == -signal.SIGTERM):
                    continue
                text, data = self._tell(number, len(loader.workers), worker.pid, code)
                said.append(text)
                if worker.pid not in self._told:
                    self._told.add(worker.pid)
                    self._probe.aside("worker_died", "error", text, data)
        return said

    def _tell(self, number, count, pid, code):
        how = "was killed by %s" % _name(-code) if code < 0 else "ended with status %d" % code
        text = "Loader worker %d of %d (process %d) %s" % (number + 1, count, pid, how)
        why = self._why(-code)
        return text + (". " + why if why else ""), {
            "pid": pid, "worker": number, "workers": count, "code": code,
            "signal": _name(-code) if code < 0 else None}

    def _why(self, number):
        if number == signal.SIGBUS:
            room = _room(_SHARED)
            told = "" if room is None else ": %s holds %s, %s are free now" % (
                _SHARED, _size(room[0]), _size(room[1]))
            return ("A bus error comes when shared memory is full%s. A container gets more by --shm-size=8g "
                    "or --ipc=host; %s" % (told, _LIGHTER))
        if number == signal.SIGKILL:
            return "%s; %s" % (self._memory(), _LIGHTER)
        if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
            return "Native code crashed in it; with PYTHONFAULTHANDLER=1 it prints the line of Python"
        return ""

    def _memory(self):
        limit, used, kills = memory_limit()
        if kills is not None and self._kills is not None and kills > self._kills:
            return "The kernel ended it for want of memory" + (
                "" if limit is None else ": the limit here is %s" % _size(limit))
        if limit is not None and used is not None:
            return ("The kernel does that at the limit of memory, which is %s here, %s of it in use now; "
                    "so may anybody else" % (_size(limit), _size(used)))
        left = available()
        told = "" if left is None else ", of which %s are free now" % _size(left)
        return "The kernel does that when memory runs out%s; so may anybody else" % told


def status(worker):
    """The exit code of a multiprocessing.Process, below 0 for a signal; None while it lives, or unknown."""
    code = getattr(getattr(worker, "_popen", None), "returncode", None)
    if code is not None:
        return code
    try:
        found = os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (OSError, AttributeError, TypeError):  # somebody else's child, or another system
        return None
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def memory_limit(root=_GROUPS, own="/proc/self/cgroup"):
    """(bytes allowed, bytes used, processes ended for want of memory) of this control group or one around it.

    Each None where it is not known or there is no limit.
    """
    found, kills = [], None
    for folder in _folders(root, own):
        for names in ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"):
            limit, used = (_number(os.path.join(folder, name)) for name in names)
            if limit is not None and limit < _NONE:
                found.append((limit, used))
        if kills is None:
            kills = _kills(folder)
    limit, used = min(found, key=lambda pair: pair[0]) if found else (None, None)
    return limit, used, kills


def _folders(root, own):
    """The own group's folder first, then those around it; a container sees its own as the root."""
    folders = []
    for line in _text(own).splitlines():
        kinds, _, path = line.partition(":")[2].partition(":")
        if kinds in ("", "memory"):
            base = os.path.join(root, "memory") if kinds else root
            parts = [part for part in path.split("/") if part not in ("", "..")]
            folders += [os.path.join(base, *parts[:n]) for n in range(len(parts), -1, -1)]
    return folders


def _kills(folder):
    for name in "memory.events", "memory.oom_control":
        for line in _text(os.path.join(folder, name)).splitlines():
            word, _, value = line.partition(" ")
            if word == "oom_kill" and value.isdigit():
                return int(value)
    return None


def _number(path):
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path):
    try:
        with open(path) as file:
            return file.read(1 << 16)
    except (OSError, ValueError):
        return ""


def _room(path):
    """(bytes in all, bytes free) of a file system; None where there is none."""
    try:
        found = os.statvfs(path)
    except (OSError, AttributeError):
        return None
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def _size(n):
    return "%.1f GB" % (n / 1e9) if n >= 1e9 else "%.0f MB" % (n / 1e6)


def _name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number
