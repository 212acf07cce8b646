"""The one formatter of numbers, for terminal, report and window.

A no-break space stands between value and unit and between thousands, the minus is
a true one, and a missing value (None, NaN, infinite) is the empty string. With
`unit=False` a function gives the number alone, for tables with the unit in the head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

NBSP = "\u00a0"
MINUS = "\u2212"
TIMES = "\u00d7"

_TIME_UNITS = ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"))
_SIZE_UNITS = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))
_MINUTE_NS = 60 * 10**9


def format_number(value: float | None, decimals: int = 0) -> str:
    """`value` with a fixed number of decimals: 1 224, −0.5."""
    if value is None or not math.isfinite(value):
        return ""
    text = f"{abs(value):,.{decimals}f}".replace(",", NBSP)
    negative = value < 0 and any(c in "123456789" for c in text)
    return MINUS + text if negative else text


def format_count(value: float | None) -> str:
    """A whole number: 1 224."""
    return format_number(value)


def format_time(ns: float | None) -> str:
    """A duration from ns to hours: 12.3 us, 1.0 ms, 4.2 s, 1 min 48 s, 2 h 05 min."""
    if ns is None or not math.isfinite(ns):
        return ""
    if abs(ns) < _MINUTE_NS - 5e7:  # 59.95 s and more is rounded to a minute
        return _scaled(ns, _TIME_UNITS)
    sign = MINUS if ns < 0 else ""
    seconds = round(abs(ns) / 1e9)
    if seconds < 3600:
        return f"{sign}{seconds // 60}{NBSP}min{NBSP}{seconds % 60}{NBSP}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{sign}{format_number(hours)}{NBSP}h{NBSP}{minutes:02d}{NBSP}min"


def format_ms(ns: float | None, decimals: int = 1, unit: bool = True) -> str:
    """A step or stage time: always ms with one decimal, so that stages add up by eye."""
    return _with_unit(format_number(None if ns is None else ns / 1e6, decimals), "ms", unit)


def ms_decimals(step_ns: float | None) -> int:
    """Decimals of all times of one step: one, and two where the whole step is below 1 ms."""
    return 2 if step_ns is not None and step_ns < 1e6 else 1


def format_bytes(value: float | None) -> str:
    """The size of a file, in powers of ten: 38.4 MB."""
    return "" if value is None or not math.isfinite(value) else _scaled(value, _SIZE_UNITS, whole_base=True)


def format_bandwidth(value: float | None) -> str:
    """Bytes per second, in powers of ten: 9.4 GB/s."""
    text = format_bytes(value)
    return f"{text}/s" if text else ""


def format_gib(value: float | None, unit: bool = True) -> str:
    """Memory of a device or machine, from bytes: 7.1 GiB."""
    return _with_unit(format_number(None if value is None else value / 2**30, 1), "GiB", unit)


def format_rate(value: float | None, name: str = "samples/s", unit: bool = True) -> str:
    """A throughput: whole from 100, else with one decimal: 1 224 samples/s, 83.1 samples/s."""
    if value is None or not math.isfinite(value):
        return ""
    decimals = 0 if abs(value) >= 99.95 else 1
    if 0 < abs(value) < 0.05:  # not 0.0: that would say that nothing was done
        decimals = 1 - math.floor(math.log10(abs(value)))
    return _with_unit(format_number(value, decimals), name, unit)


def format_share(value: float | None, decimals: int = 0, unit: bool = True) -> str:
    """A share in [0, 1] as a percentage: 69 %."""
    return _with_unit(format_number(None if value is None else 100 * value, decimals), "%", unit)


def format_ratio(value: float | None, interval: Sequence[float] | None = None) -> str:
    """A measured ratio with its 95 % interval: 1.84 × [1.79, 1.90]."""
    text = _with_unit(format_number(value, 2), TIMES)
    if text and interval is not None:
        low, high = (format_number(end, 2) for end in interval)
        text += f"{NBSP}[{low},{NBSP}{high}]"
    return text


def format_prediction(low: float | None, high: float | None) -> str:
    """A predicted ratio: 1.7 to 2.0 ×; two decimals when the interval is narrower than 0.1."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    decimals = 2 if high - low < 0.1 else 1
    first, last = format_number(low, decimals), format_number(high, decimals)
    text = first if first == last else f"{first}{NBSP}to{NBSP}{last}"
    return _with_unit(text, TIMES)


def format_power(watt: float | None, unit: bool = True) -> str:
    """Whole watts: 312 W."""
    return _with_unit(format_number(watt), "W", unit)


def format_clock(mhz: float | None, unit: bool = True) -> str:
    """A clock rate in whole MHz: 1 980 MHz."""
    return _with_unit(format_number(mhz), "MHz", unit)


def format_energy(joule: float | None, per: str = "sample") -> str:
    """Energy for one unit of work, with three digits: 0.213 J/sample, 13.6 J/step."""
    if joule is None or not math.isfinite(joule):
        return ""
    decimals = max(0, 2 - math.floor(math.log10(abs(joule)))) if joule else 3
    return _with_unit(format_number(joule, decimals), f"J/{per}")


def format_joules(joule: float | None) -> str:
    """Energy in all, with what an electricity meter would show: 12.3 kJ (3.4 Wh)."""
    if joule is None or not math.isfinite(joule):
        return ""
    watt_hours = _scaled(joule / 3600, ((1e-3, "mWh"), (1.0, "Wh"), (1e3, "kWh"), (1e6, "MWh")))
    return f"{_scaled(joule, ((1.0, 'J'), (1e3, 'kJ'), (1e6, 'MJ'), (1e9, 'GJ')))} ({watt_hours})"


def format_temperature(celsius: float | None) -> str:
    return _with_unit(format_number(celsius), "°C")


def clock(ns: float | None) -> str:
    """Time since the start, as on a clock: 00:46, 1:02:03."""
    if ns is None or not math.isfinite(ns):
        return ""
    minutes, seconds = divmod(int(abs(ns) // 10**9), 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"
    return MINUS + text if ns < 0 and text.strip("0:") else text


def format_value(value: float | None, unit: str) -> str:
    """`value` of a metric, by the unit that profiler.metrics gives it."""
    if value is None or not math.isfinite(value):
        return ""
    known: dict[str, Callable[[float], str]] = {
        "share": format_share, "B": format_gib, "B/s": format_bandwidth, "W": format_power,
        "degC": format_temperature, "MHz": format_clock, "ns": format_time, "count": format_count}
    if unit == "cores":
        return _with_unit(format_number(value, 1), "cores")
    if unit == "J":
        return _with_unit(format_number(value), "J")
    if unit == "mask":
        return f"0x{int(value):x}"
    return known[unit](value) if unit in known else _with_unit(format_number(value, 1), unit)


def _with_unit(number: str, name: str, unit: bool = True) -> str:
    return f"{number}{NBSP}{name}" if number and unit and name else number


def _scaled(value: float, units: Sequence[tuple[float, str]], whole_base: bool = False) -> str:
    """From 100 no decimals, from 1 one, below two, in the largest unit that gives at least 1."""
    size = abs(value)
    for (factor, name), following in zip(units, [*units[1:], None], strict=True):
        number = size / factor
        if following is not None and number >= 999.5:  # would read as 1000: the next unit's
            continue
        if whole_base and factor == 1.0:
            decimals = 0
        else:
            decimals = 0 if number >= 99.95 else 1 if number >= 0.995 else 2
        return _with_unit(format_number(math.copysign(number, value), 0 if not number else decimals), name)
    raise AssertionError("the last unit takes everything")
