"""The line of the user's code from which a hook was reached."""

import os
import sys
import sysconfig

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSTALLED = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
_FOREIGN = tuple({p + os.sep for p in _INSTALLED if p} | {_OURS + os.sep, "<"})


def user_frame():
    """The innermost frame that is neither ours nor of an installed package, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def is_users(name):
    """Whether a file of code is neither ours nor of an installed package."""
    return not name.startswith(_FOREIGN) and "site-packages" not in name


def user_site():
    """"path/train.py:57" of that frame, or ""."""
    frame = user_frame()
    return "" if frame is None else "%s:%d" % (shown(frame.f_code.co_filename), frame.f_lineno)


def shown(name):
    """Relative to the working directory where it lies below it."""
    try:
        relative = os.path.relpath(name)
    except (OSError, ValueError):
        return name
    return name if relative.startswith(os.pardir) else relative
