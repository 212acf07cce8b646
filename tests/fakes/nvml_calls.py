"""Every symbol that the product asks of the driver's library, and what may be missing while it fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
CARDS, SLICES = ("0", "1", "2"), ("2/0", "2/1")  # as nvml_child tells devices; the third card is split

UTIL, MEMORY = {"gpu.util", "gpu.mem_util"}, {"gpu.mem_used", "gpu.mem_free", "gpu.mem_reserved"}
CLOCKS = {"gpu.clock_sm", "gpu.clock_mem"}
FAST = UTIL | MEMORY | CLOCKS | {"gpu.power", "gpu.energy", "gpu.temperature", "gpu.throttle"}
ACTIVITY = {"gpu.sm_active", "gpu.sm_occupancy", "gpu.tensor_active", "gpu.dram_active", "gpu.fp64_active",
            "gpu.fp32_active", "gpu.fp16_active"}
PCIE, LINK = {"gpu.pcie_rx", "gpu.pcie_tx"}, {"gpu.pcie_gen", "gpu.pcie_width"}
ECC, ROWS = {"gpu.ecc_corrected", "gpu.ecc_uncorrected"}, {"gpu.rows_replaced", "gpu.rows_pending",
                                                           "gpu.rows_failed"}
USERS = {"gpu.processes", "gpu.process_mem"}
SLOW = ACTIVITY | PCIE | LINK | ECC | ROWS | USERS | {"gpu.nvlinks"}
OF_SLICE = {"fast": MEMORY, "slow": ACTIVITY | USERS}
# gpu.util_samples, gpu.power_samples, gpu.process_util and gpu.xid come when there is something new, by
# clocks that no test can hold: any of their values may be missing, and those there are must be right.

CODES = (*range(1, 31), 999, 12345, -1)
JUNK = ("ones", "zeros", "huge", "negative", "nan", "inf", "partial", "long", "short", "wrong_type",
        "no_text")
# At zero these are like any other value.
ZERO = UTIL | ACTIVITY | PCIE | ECC | ROWS | USERS | {"gpu.throttle", "gpu.nvlinks", "gpu.util_samples",
                                                      "gpu.process_util"}


@dataclass(frozen=True)
class Call:
    """A symbol, and the metrics that may be missing while it fails on a device.

    `plan`: lines that make the product ask for it. `everywhere`: it is asked for without a device.
    `opening`: it is asked for when a device is found; `vital`: without it there is no device.
    """

    symbol: str
    costs: frozenset[str] = frozenset()
    plan: tuple[str, ...] = ()
    everywhere: bool = False
    slices: bool = False
    opening: bool = False
    vital: bool = False
    blocks: frozenset[str] = frozenset()  # what may be missing beside `costs` while it hangs


def _calls(costs: Iterable[str], *symbols: str, blocks: Iterable[str] = (), **more: Any) -> list[Call]:
    return [Call(symbol, frozenset(costs), blocks=frozenset(blocks), **more) for symbol in symbols]


_D, _G = "nvmlDeviceGet", "nvmlGpm"
CALLS: tuple[Call, ...] = (
    *_calls(FAST | SLOW, "nvmlInitWithFlags", "nvmlDeviceGetCount_v2", everywhere=True, vital=True),
    *_calls((), "nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion",
            "nvmlSystemGetCudaDriverVersion_v2", everywhere=True),
    *_calls((), "nvmlSystemGetCudaDriverVersion", everywhere=True,
            plan=("ret nvmlSystemGetCudaDriverVersion_v2 13",)),
    *_calls(FAST | SLOW, _D + "HandleByIndex_v2", opening=True, vital=True),
    *_calls((), _D + "UUID", _D + "Name", _D + "EnforcedPowerLimit", _D + "PowerManagementDefaultLimit",
            _D + "ApplicationsClock", _D + "MaxClockInfo", _D + "MaxPcieLinkGeneration",
            _D + "MaxPcieLinkWidth", _D + "GpuMaxPcieLinkGeneration", _D + "PciInfo_v3",
            _D + "NvLinkRemotePciInfo_v2", _D + "CudaComputeCapability", opening=True),
    *_calls((), _D + "PowerManagementLimit", opening=True, plan=(f"ret {_D}EnforcedPowerLimit 3",)),
    *_calls(UTIL, _D + "UtilizationRates"),
    *_calls(MEMORY, _D + "MemoryInfo_v2", opening=True),
    *_calls(MEMORY, _D + "MemoryInfo", opening=True, plan=(f"ret {_D}MemoryInfo_v2 13",)),
    *_calls({"gpu.power"}, _D + "PowerUsage"),
    *_calls({"gpu.energy"}, _D + "TotalEnergyConsumption"),
    *_calls({"gpu.temperature"}, _D + "Temperature"),
    *_calls({"gpu.temperature"}, _D + "TemperatureV", plan=(f"ret {_D}Temperature 3",)),
    *_calls(CLOCKS, _D + "ClockInfo"),
    *_calls({"gpu.throttle"}, _D + "CurrentClocksEventReasons"),
    *_calls({"gpu.throttle"}, _D + "CurrentClocksThrottleReasons",
            plan=(f"ret {_D}CurrentClocksEventReasons 13",)),
    *_calls(PCIE, _D + "PcieThroughput"),
    *_calls(ACTIVITY, _G + "SampleAlloc", _G + "SampleFree", everywhere=True, blocks=PCIE),
    *_calls(ACTIVITY, _G + "QueryDeviceSupport", _G + "SampleGet", _G + "MetricsGet", blocks=PCIE),
    *_calls(ACTIVITY | PCIE, _G + "QueryDeviceSupport", _G + "SampleGet", _G + "MetricsGet",
            plan=("gpm_rates 1",)),
    *_calls(ECC, _D + "TotalEccErrors"),
    *_calls(ROWS, _D + "RemappedRows"),
    *_calls(LINK, _D + "CurrPcieLinkGeneration", _D + "CurrPcieLinkWidth", opening=True),
    *_calls({"gpu.nvlinks"}, _D + "NvLinkState", opening=True),
    *_calls((), "nvmlEventSetCreate", "nvmlEventSetFree", everywhere=True),
    *_calls((), "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2", _D + "Samples",
            _D + "ProcessesUtilizationInfo"),
    *_calls((), _D + "ProcessUtilization", plan=(f"ret {_D}ProcessesUtilizationInfo 13",)),
    *_calls(USERS, _D + "ComputeRunningProcesses_v3"),
    *_calls(USERS, _D + "ComputeRunningProcesses_v2", plan=(f"ret {_D}ComputeRunningProcesses_v3 13",)),
    *_calls((), _D + "GraphicsRunningProcesses_v3", blocks=USERS),
    *_calls((), _D + "GraphicsRunningProcesses_v2", blocks=USERS,
            plan=(f"ret {_D}GraphicsRunningProcesses_v3 13",)),
    *_calls(MEMORY | ACTIVITY | USERS, _D + "MigMode", _D + "MaxMigDeviceCount",
            _D + "MigDeviceHandleByIndex", slices=True, opening=True, vital=True),
    *_calls(ACTIVITY, _D + "GpuInstanceId", _D + "ComputeInstanceId", slices=True, opening=True),
    *_calls(ACTIVITY, _D + "DeviceHandleFromMigDeviceHandle", _G + "MigSampleGet", slices=True),
)

PLAN = (
    "gpus 3", "mem_util 12", "energy_mj 5000500", "clock_sm 1755", "clock_mem 2619", "throttle 4",
    *(f"util:{i} {31 + i}" for i in range(3)), *(f"power_mw:{i} {123456 + i}" for i in range(3)),
    *(f"temp_c:{i} {61 + i}" for i in range(3)), *(f"mem_used:{i} {(1024 + i) * MIB}" for i in range(3)),
    "pcie_rx_kb 4321", "pcie_tx_kb 1234", "gpm_sm 500", "gpm_occupancy 450", "gpm_tensor 300",
    "gpm_dram 200", "gpm_fp64 100", "gpm_fp32 150", "gpm_fp16 250", "gpm_pcie_rx 3", "gpm_pcie_tx 2",
    "ecc_corrected 7", "ecc_uncorrected 1", "remap_corrected 2", "remap_uncorrected 1", "nvlinks_up 3",
    "procs 2", "graphics_procs 1", "proc_mem 4096", "buffer_count 3", "buffer_util 50",
    "buffer_power_mw 123456", "proc_use 40", "proc_use_count 2", "mig:2 1", "gpm_samples 400",
    f"slice_used {77 * MIB}",
)  # fmt: skip


def right(metric: str, device: str) -> set[float]:
    """Every value of the metric that the plan allows, by whichever of the product's ways it is read."""
    card = int(device[0])
    used, slice_free = (1024 + card) * MIB, (10240 - 77) * MIB
    split = "/" in device
    return {
        "gpu.util": {0.31 + card / 100}, "gpu.mem_util": {0.12}, "gpu.power": {123.456 + card / 1000},
        "gpu.energy": {5000.5}, "gpu.temperature": {61 + card}, "gpu.clock_sm": {1755},
        "gpu.clock_mem": {2619}, "gpu.throttle": {4},
        "gpu.mem_used": {77 * MIB} if split else {used, used + 300 * MIB},
        "gpu.mem_free": {slice_free if split else 81920 * MIB - used - 300 * MIB},
        "gpu.mem_reserved": {0} if split else {300 * MIB},
        "gpu.pcie_rx": {4_321_000, 3 * MIB}, "gpu.pcie_tx": {1_234_000, 2 * MIB},
        "gpu.sm_active": {0.5}, "gpu.sm_occupancy": {0.45}, "gpu.tensor_active": {0.3},
        "gpu.dram_active": {0.2}, "gpu.fp64_active": {0.1}, "gpu.fp32_active": {0.15},
        "gpu.fp16_active": {0.25}, "gpu.nvlink_rx": {0}, "gpu.nvlink_tx": {0},
        "gpu.ecc_corrected": {7}, "gpu.ecc_uncorrected": {1}, "gpu.rows_replaced": {3},
        "gpu.rows_pending": {0}, "gpu.rows_failed": {0}, "gpu.pcie_gen": {5}, "gpu.pcie_width": {16},
        "gpu.nvlinks": {3}, "gpu.processes": {2}, "gpu.process_mem": {4096}, "gpu.util_samples": {0.5},
        "gpu.power_samples": {123.456}, "gpu.process_util": {0.4}, "gpu.xid": {79},
    }[metric]  # fmt: skip


def wanted(source: str) -> dict[str, set[str]]:
    """Device -> the metrics that come at each tick of a source while nothing fails."""
    cards = FAST if source == "fast" else SLOW
    return {**dict.fromkeys(CARDS, cards), **dict.fromkeys(SLICES, OF_SLICE[source])}


@dataclass(frozen=True)
class Fault:
    """One way in which a call can fail: an error code, a missing symbol, a hang, or nonsense."""

    call: Call
    kind: str  # "ret 3", "missing", "hang", "junk ones"

    @property
    def devices(self) -> tuple[str, ...]:
        if self.call.slices:
            return SLICES
        return (*CARDS, *SLICES) if self.call.everywhere or self.kind == "missing" else ("0",)

    @property
    def lines(self) -> tuple[str, ...]:
        if self.kind == "missing":
            return ()
        at = "" if self.call.everywhere else ":2" if self.call.slices else ":0"
        word, _, value = self.kind.partition(" ")
        return (f"{word}{at} {self.call.symbol} {value}".strip(),)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Symbols that are not there."""
        return (self.call.symbol,) if self.kind == "missing" else ()

    @property
    def loses(self) -> bool:
        """Whether the device as a whole is taken for lost."""
        return self.kind in ("ret 15", "ret 16")

    @property
    def quiet(self) -> bool:
        """Whether it may go without a word: NaN is how the driver says that nothing ran."""
        return self.call.symbol == "nvmlGpmMetricsGet" and self.kind in ("junk nan", "junk ones")

    def may_miss(self, start: bool) -> dict[str, set[str]]:
        """Device -> metrics that may be missing while it lasts. `start`: it was there from the start."""
        whole = self.loses or (start and (self.call.vital or (self.kind == "hang" and self.call.opening)))
        costs = FAST | SLOW if whole else set(self.call.costs)
        if self.kind in ("hang", "ret 1"):
            costs |= self.call.blocks
        devices = ("2", *SLICES) if whole and self.call.slices and self.kind == "hang" else self.devices
        missing = {device: set(costs) for device in devices}
        if self.kind == "ret 1":  # all is bound anew, and an average needs a sample before
            missing |= {device: missing.get(device, set()) | ACTIVITY | PCIE for device in (*CARDS, *SLICES)}
        return missing

    def values(self, metric: str, device: str) -> set[float]:
        """What is right for the metric: of junk the zeros too, where zero is like any other value."""
        none = device in self.devices and self.kind in ("junk zeros", "junk short", "ret 6")  # 6: NotFound
        zero = none and metric in ZERO
        shown = {1.0} if none and metric == "gpu.processes" else set()  # on the other list
        return right(metric, device) | ({0.0} if zero else set()) | shown


def faults(codes: Iterable[int] = CODES) -> list[Fault]:
    """Every kind of every call. A process that hangs while it looks for its library is another test's."""
    kinds = [*(f"ret {code}" for code in codes), "missing", "hang", *(f"junk {word}" for word in JUNK)]
    silent = "nvmlInit", "nvmlSystem", "nvmlShutdown", "nvmlDevice"
    return [Fault(call, kind) for call in CALLS for kind in kinds if call.symbol != "nvmlErrorString"
            and not (kind == "hang" and call.everywhere and call.symbol.startswith(silent))]
