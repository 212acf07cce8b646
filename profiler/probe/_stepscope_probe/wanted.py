"""Which settings an experiment can change in a program, and the values that they take.

Importing this does not import torch: the recorder looks here before anything is started.
"""

PRECISIONS = ("highest", "high", "medium")


def _switch(value):
    return value is True or value is False


def _from(least):
    return lambda value: type(value) is int and value >= least


# What each takes, in words and as a test. `inference`: the loop has no backward, so any loader is the loop's.
SETTINGS = {
    "num_workers": ("a whole number from 0", _from(0)),
    "prefetch_factor": ("a whole number from 1", _from(1)),
    "pin_memory": ("true or false", _switch),
    "persistent_workers": ("true or false", _switch),
    "cached_batch": ("true or false", _switch),
    "device_batch": ("true or false", _switch),
    "loader_only": ("true, false or a number of steps", lambda value: _switch(value) or _from(1)(value)),
    "forward_only": ("true or false", _switch),
    "matmul_precision": ("one of " + ", ".join(PRECISIONS), lambda value: value in PRECISIONS),
    "cudnn_benchmark": ("true or false", _switch),
    "threads": ("a whole number from 1", _from(1)),
    "inference": ("true or false", _switch),
}


def refused(wanted):
    """What cannot be done: names of no setting, and (name, value) where it does not take the value."""
    unknown = sorted(set(wanted) - set(SETTINGS))
    wrong = [(name, wanted[name]) for name in sorted(set(wanted) & set(SETTINGS))
             if not SETTINGS[name][1](wanted[name])]
    return unknown, wrong
