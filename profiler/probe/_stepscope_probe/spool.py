"""The spool: JSON lines in files of one process, in segments that the recorder deletes once read."""

import errno
import os
import time

SEGMENT_BYTES = 8 << 20
SEGMENTS = 4  # unread ones; beyond that records are dropped and counted
_RECHECK_NS = 500_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # room may come back


class Spool:
    """Appends whole lines with one write each, so that the lines of several threads never mix.

    A spool that cannot be written any more is given up silently: there is nobody to tell.
    """

    def __init__(self, directory):
        self.directory = directory
        self.fd = -1
        self.dropped = 0
        self.dead = False
        self._pid = os.getpid()
        self._n = 0
        self._file = None
        self._size = 0
        self._full_until = 0

    def write(self, text):
        """Append records: whole lines that end with a line break."""
        told = 0
        if self.fd >= 0 and not self._ours():
            self.fd = -1  # the program has closed all its files, and may have others under this number
        if self.fd < 0 or self._size >= SEGMENT_BYTES:
            if not self._next():
                self.dropped += text.count("\n")
                return
            told = self.dropped
            if told:
                text = '["dropped",%d]\n' % told + text
        data = text.encode("utf-8", "replace")
        try:
            done = os.write(self.fd, data)
        except OSError as error:
            if error.errno not in _FULL:
                self.give_up()
                return
            done = 0
        self._size += done
        if done < len(data):
            self._lost(data, done, told)
        elif told:
            self.dropped -= told

    def _ours(self):
        try:
            found = os.fstat(self.fd)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def _lost(self, data, done, told):
        """There is no room. A new segment follows, so that the recorder deletes what it has read."""
        kept = data.count(b"\n", 0, done)
        self.dropped += data.count(b"\n") - kept
        if told:  # the first line tells of those dropped before, and is none of them
            self.dropped -= told if kept else 1
        self._size = SEGMENT_BYTES
        self._full_until = 0

    def _next(self):
        """Begin a segment. False while the recorder lags behind."""
        if self.dead:
            return False
        now = time.monotonic_ns()
        if now < self._full_until or self._unread() >= SEGMENTS:
            if now >= self._full_until:
                self._full_until = now + _RECHECK_NS
            return False
        self._close()
        try:
            self.fd = self._create()
        except OSError as error:
            if error.errno in _FULL:
                self._full_until = now + _RECHECK_NS
            else:
                self.give_up()
            return False
        self._size = 0
        return True

    def _create(self):
        while True:
            path = os.path.join(self.directory, "%d.%d.spool" % (self._pid, self._n))
            self._n += 1
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            except FileExistsError:  # an earlier program in this same process, before exec
                continue
            found = os.fstat(fd)
            self._file = found.st_dev, found.st_ino
            return _out_of_the_way(fd)

    def _unread(self):
        prefix = "%d." % self._pid
        try:
            return sum(n.startswith(prefix) and n.endswith(".spool") for n in os.listdir(self.directory))
        except OSError:
            return 0

    def _close(self):
        if self.fd >= 0 and self._ours():
            try:
                os.close(self.fd)
            except OSError:
                pass
        self.fd = -1

    def forget(self):
        """In a forked child: close this process's copy, and never write to the parent's file."""
        self.give_up()

    def give_up(self):
        self._close()
        self.dead = True


def _out_of_the_way(fd):
    """The same file under a high number.

    A program that closes all its files and opens its own must not find them under our number.
    """
    try:
        import fcntl
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(3, min(limit, 1024) - 24))
    except (ImportError, OSError, ValueError):
        return fd
    os.close(fd)
    return high
