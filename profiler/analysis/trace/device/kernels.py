"""Kernels by name, operator, module, shapes, stream: how often, how long, how well they fill the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profiler.analysis.trace.code.grouping import coded, extremes, summed, weighted, weighted_mean
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device import occupancy, tensor_cores
from profiler.analysis.trace.joined import take
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind

KEYS = ("name", "operator", "top_operator", "module", "shapes", "device", "stream")


@dataclass(frozen=True, slots=True)
class Group:
    """Kernels with one key. Shares are of time, in [0, 1]; None where the file does not tell."""

    key: tuple[str, ...]
    count: int
    total_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    share: float                  # of the time of all kernels looked at
    tensor_cores: float           # of its time in kernels that use matrix units, a lower bound
    sm_efficiency: float | None
    occupancy: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """All kernels looked at. Times are sums: overlapping kernels count each."""

    count: int
    total_ns: int
    median_ns: float | None
    tensor_cores: float | None           # share of kernel time, a lower bound
    tensor_cores_possible: float | None  # share of kernel time in operators that could use matrix units
    sm_efficiency: float | None
    occupancy: float | None
    occupancy_known: float | None        # share of kernel time for which occupancy could be worked out


class Kernels:
    """The kernels of a trace; columns are as long as Trace.device."""

    def __init__(self, owners: Owners) -> None:
        self.owners = owners
        self.trace = owners.trace

    @cached_property
    def is_kernel(self) -> Flags:
        """Device rows that are kernels."""
        return self.trace.device.kind == Kind.KERNEL

    @cached_property
    def sm_efficiency(self) -> occupancy.Floats:
        """Share of the multiprocessors that the grid reaches; NaN where unknown."""
        return occupancy.sm_efficiency(self.trace)

    @cached_property
    def occupancy(self) -> occupancy.Floats:
        """Estimated, of each kernel by itself; NaN where unknown."""
        return occupancy.occupancy(self.trace)

    def by(self, *keys: str, rows: Flags | None = None) -> tuple[Group, ...]:
        """Kernels, or those among `rows` (bool[n]), with equal values of `keys` (of KEYS); longest first."""
        chosen = np.flatnonzero(self.is_kernel if rows is None else self.is_kernel & rows)
        time = self.owners.device_time[chosen]
        columns = [self._column(key)[chosen] for key in keys]
        first, code = coded(columns)
        texts = [tuple(self._text(key, value) for key, value in zip(keys, values, strict=True))
                 for values in zip(*(column[first].tolist() for column in columns), strict=True)]
        n, whole = len(texts), int(time.sum())
        count, total = np.bincount(code, minlength=n).tolist(), summed(code, time, n).tolist()
        low, high = (column.tolist() for column in extremes(code, time, n))
        tensor = summed(code, time * self.owners.matrix_units[chosen], n).tolist()
        efficiency = weighted(code, self.sm_efficiency[chosen], time, n)
        filled = weighted(code, self.occupancy[chosen], time, n)
        order = sorted(range(n), key=lambda i: (-total[i], texts[i]))
        return tuple(
            Group(texts[i], count[i], total[i], total[i] / count[i], low[i], high[i],
                  total[i] / whole if whole else 0.0, tensor[i] / total[i] if total[i] else 0.0,
                  efficiency[i], filled[i])
            for i in order)

    def summary(self, rows: Flags | None = None) -> Summary:
        """Of all kernels, or of those among `rows`: bool[n]."""
        chosen = np.flatnonzero(self.is_kernel if rows is None else self.is_kernel & rows)
        time = self.owners.device_time[chosen]
        whole = int(time.sum())

        def share(flags: Flags) -> float | None:
            return float(time[flags[chosen]].sum() / whole) if whole else None

        return Summary(len(chosen), whole, float(np.median(time)) if len(time) else None,
                       share(self.owners.matrix_units), share(tensor_cores.could_use(self.owners)),
                       weighted_mean(self.sm_efficiency[chosen], time),
                       weighted_mean(self.occupancy[chosen], time), share(np.isfinite(self.occupancy)))

    def _column(self, key: str) -> Ints | Codes:
        device, host, owners = self.trace.device, self.trace.host, self.owners
        match key:
            case "name":
                return device.name
            case "operator":
                return take(host.name, owners.device_operator)
            case "top_operator":
                return take(host.name, owners.device_top)
            case "shapes":
                return take(host.dims, owners.device_operator)
            case "module":
                return take(owners.paths.code, owners.device_module)
            case "device":
                return device.device
            case "stream":
                return device.stream
        raise ValueError(f"no key of kernels: {key}")

    def _text(self, key: str, value: int) -> str:
        if key in ("device", "stream"):
            return str(value) if value != NONE else ""
        if value == NONE:
            return ""
        return self.owners.paths.texts[value] if key == "module" else self.trace.names[value]
