"""Lets the probe into every Python process of a recording, then runs the sitecustomize it shadows.

Parses on Python 2.7: the target's tools may still run there. The probe itself
runs on Python 3.8 and later, and only where STEPSCOPE_SPOOL is set.
"""

import os
import sys


def _start_probe():
    if not os.environ.get("STEPSCOPE_SPOOL") or sys.version_info < (3, 8):
        return
    try:
        import _stepscope_probe

        _stepscope_probe.enter()
    except Exception:  # nothing of ours may stop the user's interpreter
        pass


def _run_shadowed():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or os.curdir) != here]
    if sys.version_info[0] < 3:
        import imp

        try:
            found = imp.find_module("sitecustomize", path)
        except ImportError:
            return
        imp.load_module("sitecustomize", *found)
        return
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    # What the user's code finds under this name is the module that we stand before.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start_probe()
_run_shadowed()
