"""The probe: what StepScope puts into the user's interpreter. Standard library and torch only.

`enter()` is called by sitecustomize at the start of every Python process of a
recording, `start()` by `stepscope.attach()`. Nothing heavy is imported here:
processes that never import torch pay for this file and an import hook.
"""

import os
import sys

_probe = None


def enter():
    """Wait for torch in this process, and hold the lifeline to the recorder."""
    from . import lifeline, process

    lifeline.hold()
    if process.kind() == process.INERT:
        return
    if "torch" in sys.modules:
        start()
        return
    from . import imports

    imports.after("torch", start, _torch_comes)


def _torch_comes():
    """Its import may take long: until it is done this says that we are here."""
    path = os.path.join(os.environ["STEPSCOPE_SPOOL"], "%d.entered" % os.getpid())
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def start():
    """Start the probe now that torch is imported, or wait for it. False outside a recording."""
    global _probe
    directory = os.environ.get("STEPSCOPE_SPOOL")
    if not directory:
        return False
    if _probe is not None:
        return True
    if "torch" not in sys.modules:
        from . import imports

        imports.after("torch", start)
        return True
    from . import probe, process

    _probe = probe.Probe(directory, lazy=process.kind() != process.EAGER)
    _probe.start()
    return True


def event(kind, text, data):
    """Keep a line in the run, with its figures as a dict of plain values. Nothing outside a recording."""
    if _probe is not None:
        _probe.event(kind, "info", text, data)
