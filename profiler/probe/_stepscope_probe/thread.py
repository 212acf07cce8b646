"""What the loop's thread has used and waited for, as the system counts it: read ten times a second.

Not for each step: a reading takes some microseconds, and steps may be shorter than a
millisecond. The recorder turns the counts into rates between two readings.
"""

import threading
import time
from _thread import get_ident

import torch

try:
    import resource

    _WHO = getattr(resource, "RUSAGE_THREAD", None)  # Linux
except ImportError:
    _WHO = None


class LoopThread:
    name = "counts of the loop's thread"

    def __init__(self, loop):
        self.loop = loop

    def records(self, now):
        """A line of counts since the start of the thread; nothing on another thread or system.

        Its numbers: the time, ns of CPU in the kernel, ns in which the thread could run and had no core
        (null where the kernel does not count them), page faults served from memory, switches that
        took the core away, and the threads that one operator of torch uses.
        """
        if _WHO is None or get_ident() != self.loop.thread:
            return []
        used = resource.getrusage(_WHO)
        waited = _waited()
        return ['["thread",%d,%d,%s,%d,%d,%d]\n' % (
            time.monotonic_ns(), int(used.ru_stime * 1e9), "null" if waited is None else waited,
            used.ru_minflt, used.ru_nivcsw, torch.get_num_threads())]


def _waited():
    """ns, from the scheduler's own count. Opened anew: an open file would be in the program's way."""
    try:
        with open("/proc/self/task/%d/schedstat" % threading.get_native_id(), "rb", 0) as file:
            return int(file.read(100).split()[1])
    except (OSError, ValueError, IndexError):
        return None
