"""Keeps a compiler's hands off our own functions where they run inside a region that it compiles.

Only the frames are left alone. Where a function of the user's that is compiled calls one
of ours, the compiler looks through it, sees `is_compiling()`, and takes the short way out.
"""

import sys
import types


def leave_alone():
    """Mark all code of this package to be run as it is."""
    skip = _skipper()
    if skip is not None:
        for code in set(_codes()):
            skip(code)


def _skipper():
    """torch's function that marks one code object, by its newer or older name; None without any."""
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "set_code_exec_strategy"):
        action = eval_frame._FrameAction
        strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
        return lambda code: eval_frame.set_code_exec_strategy(code, strategy)
    return getattr(eval_frame, "skip_code", None)


def _codes():
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == __package__ and module is not None:
            for value in vars(module).values():
                if getattr(value, "__module__", None) == name:
                    yield from _of(value)


def _of(value):
    if isinstance(value, types.FunctionType):
        yield from _nested(value.__code__)
    elif isinstance(value, type):
        for member in vars(value).values():
            if isinstance(member, types.FunctionType):
                yield from _nested(member.__code__)


def _nested(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
