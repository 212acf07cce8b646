"""Ends this process and its children when the recorder is gone. Only workloads and experiments ask for it."""

import os
import signal
import stat


def hold():
    """Watch the pipe named by STEPSCOPE_LIFELINE from a thread, in the first process that sees it."""
    text = os.environ.pop("STEPSCOPE_LIFELINE", None)
    # Children do not inherit the setting: the same number may be another file in them,
    # and this process ends them with itself.
    if text is None:
        return
    try:
        fd = int(text)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return
        os.set_inheritable(fd, False)
    except (ValueError, OSError):
        return
    import _thread

    _thread.start_new_thread(_watch, (fd,))


def _watch(fd):
    try:
        while os.read(fd, 64):
            pass
    except OSError:
        return  # somebody closed it: then it says nothing about the recorder
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    os._exit(143)


def descendants(root):
    """Process ids of the children of `root` and theirs, from /proc."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    # The command in brackets may hold anything, so count from the last bracket.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, queue = [], [root]
    while queue:
        for pid in children.get(queue.pop(), ()):
            found.append(pid)
            queue.append(pid)
    return found
