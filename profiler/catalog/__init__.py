"""The workloads and faults we ship: what they are and what can be set, read without importing torch.

A file of `workloads/` that does not start with `_` is a workload. It has a
docstring, TITLE, GROUP, ICON, UNIT, SIZES, a dataclass `Settings`, `check(settings)`
and `run(settings, data)`. With `check_data(path)` it takes the user's own data;
with `not_applicable(settings)` it says itself what means nothing beside what.
HEALTHY: settings over those of size=smallest with which it computes all the time on
two CPU cores; where it has them, the matrix holds the diagnosis against such a run.
A file of `workloads/_faults/` is a fault to order: a float setting of its name
in every workload in which it can act.
"""

from profiler.catalog._machine import UNKNOWN, Gpu, Machine, machine_of
from profiler.catalog._read import (
    FAULTS,
    GROUPS,
    FaultInfo,
    Setting,
    WorkloadInfo,
    fault,
    faults,
    get,
    load,
    named,
    workloads,
)
from profiler.catalog._values import (
    SIZE,
    advise,
    check,
    check_data,
    make_settings,
    not_applicable,
    parse_settings,
    parse_value,
    setting_options,
    work_per_sample,
    workload_command,
)

__all__ = [
    "FAULTS", "GROUPS", "SIZE", "UNKNOWN", "FaultInfo", "Gpu", "Machine", "Setting", "WorkloadInfo", "advise",
    "check", "check_data", "fault", "faults", "get", "load", "machine_of", "make_settings", "named",
    "not_applicable", "parse_settings", "parse_value", "setting_options", "work_per_sample",
    "workload_command", "workloads",
]
