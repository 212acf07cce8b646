"""What kind of process this is: whether it may write at once, only once it steps, or never."""

EAGER = "eager"  # an ordinary process: says hello when torch is imported
LAZY = "lazy"  # a child of multiprocessing: a loader worker, or a training process; writes once it steps
INERT = "inert"  # a helper that never trains

_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker",
            "torch/_inductor/compile_worker", "torch._inductor.compile_worker")
_CHILDREN = ("--multiprocessing-fork", "multiprocessing.forkserver")


def kind(command=None):
    """One of the three, from the command line of this process."""
    text = " ".join(_command() if command is None else command)
    if any(helper in text for helper in _HELPERS):
        return INERT
    if any(child in text for child in _CHILDREN):
        return LAZY
    return EAGER


def _command():
    # sys.argv is not there yet when sitecustomize runs, and never holds what follows -c.
    import sys

    if hasattr(sys, "orig_argv"):
        return sys.orig_argv
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return getattr(sys, "argv", [])
