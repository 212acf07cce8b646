"""How much memory a profiler window may take."""

import os

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Budget:
    """Room for the growth of this process: `growth` bytes, or an eighth of what is left if that is less.

    The end of a window needs several times what its records took.
    """

    def __init__(self, growth):
        self._begin = _resident()
        rooms = [growth] + [room // 8 for room in _rooms() if room is not None]
        self.limit = self._begin + min(rooms)

    def exceeded(self):
        return _resident() > self.limit


def _resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _rooms():
    """Bytes left in the machine, in the container, and under the process's own limit; None when not known."""
    yield available()
    yield _container()
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * _PAGE
        yield None if limit == resource.RLIM_INFINITY else max(0, limit - used)
    except (ImportError, OSError, ValueError):
        yield None


def available():
    """Bytes that the machine has left; None when that is not known."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _container():
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
        with open("/sys/fs/cgroup/memory.current") as file:
            return None if limit == "max" else max(0, int(limit) - int(file.read()))
    except (OSError, ValueError):
        return None
