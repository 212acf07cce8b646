"""What is read of an AMD GPU: one entry a field, under the names and units of NVML's.

A way is bound to a processor of AMD SMI (see _amd_library.Asked); the module is not needed beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from profiler.sources._amd_library import NONE, NOT_TOLD, Asked
from profiler.sources._fields import (
    CLOCK_BOUND,
    ENERGY_BOUND,
    HIGHEST_POWER_LIMIT,
    MEMORY_BOUND,
    PCIE_BOUND,
    REASONS_BOUND,
    TEMPERATURE_BOUND,
    Bind,
    Field,
    Implausible,
    Values,
    Way,
)
from profiler.sources._library import Missing

MIB = 1 << 20
XGMI_BOUND = 1e14  # B/s
GENERATIONS = {2500: 1, 5000: 2, 8000: 3, 16000: 4, 32000: 5, 64000: 6}  # MT/s of a lane -> PCIe generation
POWER_CAP, THERMAL, THERMAL_HARD = 0x04, 0x20, 0x40  # as NVML's reasons: one meaning, one bit
# What AMD counts by the time for which it held clocks back, and the reason that it is.
RESIDENCIES = {"ppt_residency_acc": POWER_CAP, "socket_thm_residency_acc": THERMAL,
               "vr_thm_residency_acc": THERMAL, "hbm_thm_residency_acc": THERMAL,
               "prochot_residency_acc": THERMAL_HARD}  # fmt: skip
# Bits of the status that is the same for all cards: power and current limits, temperatures, alarms.
STATUS = ((range(32), POWER_CAP), (range(32, 44), THERMAL), (range(44, 48), THERMAL_HARD))


def number(value: Any) -> float | None:
    """A value of AMD SMI; None for what stands for none ("N/A", all bits set) and for what is no quantity."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value in NONE:
        return None
    return value if math.isfinite(value) else None


def told(value: Any) -> float:
    """A value of AMD SMI. Missing for what stands for none."""
    found = number(value)
    if found is None:
        raise Missing(NOT_TOLD)
    return found


def needed(said: Mapping[str, Any], *keys: str) -> float:
    """The first of the keys that has a value. Missing when none has."""
    return told(next((said[key] for key in keys if number(said.get(key)) is not None), None))


def _activity(key: str) -> Bind:
    def bind(_: Any, asked: Asked) -> Callable[[], Values]:
        return lambda: (needed(asked.once("amdsmi_get_gpu_activity"), key) / 100,)

    return bind


def memory_bytes(asked: Asked, what: str) -> float:
    """total or usage of the device's memory in B."""
    return told(asked(f"amdsmi_get_gpu_memory_{what}", asked.enum("AmdSmiMemoryType", "VRAM")))


def _memory(_: Any, asked: Asked) -> Callable[[], Values]:
    total = memory_bytes(asked, "total")

    def read() -> Values:
        used = memory_bytes(asked, "usage")
        return used, _free(used, total)

    return read


def _memory_mib(_: Any, asked: Asked) -> Callable[[], Values]:
    def read() -> Values:
        said = asked("amdsmi_get_gpu_vram_usage")
        used = needed(said, "vram_used") * MIB
        return used, _free(used, needed(said, "vram_total") * MIB)

    return read


def _free(used: float, total: float) -> float:
    if used > total:
        raise Implausible(used, f"{used:.6g} of {total:.6g} bytes cannot be")
    return total - used


def _power(key: str) -> Bind:
    def bind(_: Any, asked: Asked) -> Callable[[], Values]:
        def read() -> Values:
            value = needed(asked("amdsmi_get_power_info"), key)
            if not value:  # cards have one of the figures, and older packages give 0 for the others
                raise Missing(NOT_TOLD)
            return (value,)

        return read

    return bind


def _temperature(sensor: str) -> Bind:
    def bind(_: Any, asked: Asked) -> Callable[[], Values]:
        kind = asked.enum("AmdSmiTemperatureType", sensor)
        now = asked.enum("AmdSmiTemperatureMetric", "CURRENT")
        return lambda: (told(asked("amdsmi_get_temp_metric", kind, now)),)

    return bind


def _clock(which: str) -> Bind:
    def bind(_: Any, asked: Asked) -> Callable[[], Values]:
        kind = asked.enum("AmdSmiClkType", which)
        return lambda: (needed(asked("amdsmi_get_clock_info", kind), "clk", "cur_clk"),)

    return bind


class Rising:
    """A counter that only rises, over its wraps (at 32 or 64 bits) and resets of the device.

    Kept for a device for good, since what was counted before is not to be lost with a handle.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._base = 0
        self._at = 0.0
        self._doubted: int | None = None  # the reading before, where it was none that could be

    def of(self, raw: int, unit: float) -> float:
        """`raw` counts of `unit` J, as J that never fall. Implausible for a leap that no card can make.

        What was used in a reset, or in a leap that turns out to be for good, is not known and not counted.
        """
        now, last = time.monotonic(), raw if self._last is None else self._last
        base, most = self._base, HIGHEST_POWER_LIMIT * (now - self._at + 10.0) / unit  # counts
        if raw < last:
            wrap = next((1 << bits for bits in (32, 64) if 0.9 < last / (1 << bits) < 1), last - raw)
            base += wrap if raw + wrap - last <= most else last - raw
        elif raw - last > most:
            before, self._doubted = self._doubted, raw
            if before is None or not 0 < raw - before <= most:  # junk does not rise
                raise Implausible(raw * unit, f"its counter leapt by {(raw - last) * unit:.6g} J")
            base -= raw - last
        self._base, self._last, self._at, self._doubted = base, raw, now, None
        return (base + raw) * unit


def energy() -> Field:
    """The energy counter of one GPU, in J."""
    counter = Rising()

    def bind(_: Any, asked: Asked) -> Callable[[], Values]:
        def read() -> Values:
            said = asked("amdsmi_get_energy_count")
            raw = needed(said, "energy_accumulator", "power")  # as it was called before ROCm 6.4
            unit = needed(said, "counter_resolution")  # uJ
            if not raw or not unit:
                raise Missing(NOT_TOLD)
            return (counter.of(int(raw), unit * 1e-6),)

        return read

    return Field("energy", ("gpu.energy",), (Way(bind, {"method": "counter"}),), ENERGY_BOUND)


UTILIZATION = Field("utilization", ("gpu.util",), (Way(_activity("gfx_activity")),), highest=1.0)
CONTROLLER = Field("memory controller", ("gpu.mem_util",), (Way(_activity("umc_activity")),), highest=1.0)
MEMORY = Field("memory", ("gpu.mem_used", "gpu.mem_free"),
               (Way(_memory, {"version": "AMD SMI"}), Way(_memory_mib, {"version": "AMD SMI, in MiB"})),
               MEMORY_BOUND)
POWER = Field("power", ("gpu.power",), tuple(
    Way(_power(key), {"method": text}) for key, text in (
        ("current_socket_power", "of the socket, now"), ("average_socket_power", "of the socket, averaged"),
        ("socket_power", "of the socket"))), lowest=0.001)
TEMPERATURE = Field("temperature", ("gpu.temperature",), (
    Way(_temperature("HOTSPOT"), {"sensor": "hotspot"}), Way(_temperature("EDGE"), {"sensor": "edge"})),
    TEMPERATURE_BOUND, lowest=1)
CLOCK = Field("shader clock", ("gpu.clock_sm",), (Way(_clock("GFX")),), CLOCK_BOUND)
MEMORY_CLOCK = Field("memory clock", ("gpu.clock_mem",), (Way(_clock("MEM")),), CLOCK_BOUND)
# A part of a split card has these of its own; the rest is the whole card's, and its first part tells it.
OF_PART = (UTILIZATION, CONTROLLER, MEMORY)
OF_CARD = (POWER, TEMPERATURE, CLOCK, MEMORY_CLOCK)


def _residency(_: Any, asked: Asked) -> Callable[[], Values]:
    """Which limits held clocks back since the reading before, by counters of the time in which they did."""
    before: dict[str, float] = {}

    def read() -> Values:
        nonlocal before
        said = asked.once("amdsmi_get_gpu_metrics_info")
        now = {key: value for key in RESIDENCIES if (value := number(said.get(key))) is not None}
        if not now:
            raise Missing(NOT_TOLD)
        earlier, before = before, now
        if not earlier:
            return (None,)
        mask = 0
        for key, value in now.items():
            mask |= RESIDENCIES[key] if value > earlier.get(key, value) else 0
        return (mask,)

    return read


def _status(_: Any, asked: Asked) -> Callable[[], Values]:
    def read() -> Values:
        status = int(needed(asked.once("amdsmi_get_gpu_metrics_info"), "indep_throttle_status"))
        return (sum({reason for bits, reason in STATUS if any(status >> bit & 1 for bit in bits)}),)

    return read


def _xgmi(_: Any, asked: Asked) -> Callable[[], Values]:
    """Rates of all XGMI links together, by counters of KB taken as 1000 B."""
    before: tuple[float, float, float] | None = None

    def read() -> Values:
        nonlocal before
        links = xgmi_links(asked)
        got, sent = (sum(needed(link, key) for link in links) for key in ("read", "write"))
        now = time.monotonic(), got, sent
        earlier, before = before, now
        if earlier is None or now[0] <= earlier[0]:
            return None, None
        took = now[0] - earlier[0]
        return tuple(1000 * (b - a) / took if b >= a else None
                     for a, b in zip(earlier[1:], now[1:], strict=True))

    return read


def xgmi_links(asked: Asked) -> list[dict[str, Any]]:
    """The XGMI links of a GPU. Missing when it has none."""
    kind = asked.enum("AmdSmiLinkType", "AMDSMI_LINK_TYPE_XGMI")
    said = asked.once("amdsmi_get_link_metrics")
    links = [link for link in said["links"][:said["num_links"]] if link["link_type"] == kind]
    if not links:
        raise Missing("this GPU has no XGMI links")
    return links


def _pcie_link(_: Any, asked: Asked) -> Callable[[], Values]:
    def read() -> Values:
        said = asked.once("amdsmi_get_pcie_info")["pcie_metric"]
        generation, width = generation_of(said.get("pcie_speed")), number(said.get("pcie_width"))
        if not generation and not width:
            raise Missing(NOT_TOLD)
        return generation, width or None

    return read


def _pcie_rate(_: Any, asked: Asked) -> Callable[[], Values]:
    """Of both directions together, told in Mb/s: AMD SMI does not tell one from the other."""
    return lambda: (needed(asked.once("amdsmi_get_pcie_info")["pcie_metric"], "pcie_bandwidth") * 1e6 / 8,)


def generation_of(speed: Any) -> int | None:
    """PCIe generation of a speed in MT/s; None for what is the speed of none."""
    return GENERATIONS.get(int(number(speed) or 0))


THROTTLE = Field("throttle reasons", ("gpu.throttle",), (
    Way(_residency, {"method": "time held back since the reading before"}),
    Way(_status, {"method": "status"})), REASONS_BOUND)
XGMI = Field("XGMI rates", ("gpu.nvlink_rx", "gpu.nvlink_tx"), (Way(_xgmi, {"method": "XGMI"}),), XGMI_BOUND)
LINK = Field("PCIe link", ("gpu.pcie_gen", "gpu.pcie_width"), (Way(_pcie_link),), highest=64)
RATE = Field("PCIe rate", ("gpu.pcie_both",), (Way(_pcie_rate),), PCIE_BOUND)
SLOW = (THROTTLE, XGMI, LINK, RATE)
