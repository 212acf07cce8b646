"""Every symbol asked of the driver fails in every way: the rest keeps each tick, nothing is invented."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.nvml_calls import CALLS, CARDS, CODES, JUNK, MIB, PLAN, SLICES, Fault, faults, wanted

Start = Callable[..., Any]
SOURCES = Path(__file__).resolve().parents[2] / "profiler" / "sources"
FEW = (1, 3, 4, 6, 13, 15, 999)  # codes that are told apart
FASTS, SLOWS = 2, 1  # ticks
PROPERTIES: dict[str, dict[str, Any]] = {
    "": {"power_limit_w": 700.0, "power_limit_default_w": 700.0, "app_clock_sm": 1980, "max_clock_sm": 1980,
         "max_clock_mem": 2619, "pcie_gen": 5, "pcie_width": 16, "pcie_gen_card": 5, "pcie_gen_now": 5,
         "pcie_width_now": 16, "compute_capability": "9.0", "memory_total": 81920 * MIB},
    "/": {"memory_total": 10240 * MIB, "compute_capability": "9.0"},
}


class World:
    """A child whose driver fails in one way after another."""

    def __init__(self, child: Any) -> None:
        self.child = child
        child.do("attend")

    def set(self, *lines: str, lacking: tuple[str, ...] = ()) -> None:
        self.child.plan.set(*PLAN, *lines)
        self.child.do("without", symbols=list(lacking))

    def open(self) -> bool:
        """Sources anew. Whether there are devices."""
        self.child.do("anew")
        opened = "error" not in self.child.ask("call", source="fast", method="open")
        self.child.do("call", source="slow", method="open")
        self.read(1, 2, 1.0)  # an average needs a sample before
        return opened

    def read(self, fast: int, slow: int, step_s: float) -> None:
        self.child.read_slow(slow, step_s)
        self.child.read(fast, step_s)

    def news(self) -> tuple[dict[tuple[str, str], Counter[float]], list[tuple[str, str, str]]]:
        told = self.child.do("news")
        values = {}
        for name, counts in told["values"].items():
            metric, device = name.split(" ")
            values[metric, device] = Counter(dict(counts))
        return values, [tuple(event) for event in told["events"]]


def check(values: dict[tuple[str, str], Counter[float]], ticks: dict[str, int], missing: dict[str, set[str]],
          right: Callable[[str, str], set[float]], where: tuple[object, ...]) -> int:
    """Every value that can be had came at each tick, and each is right. How many there had to be."""
    for (metric, device), counts in values.items():
        if metric not in ("gpu.nvlink_rx", "gpu.nvlink_tx"):
            allowed = {round(value, 6) for value in right(metric, device)}
            assert set(counts) <= allowed, (*where, metric, device, counts)
    had = 0
    for source, count in ticks.items():
        for device, metrics in wanted(source).items():
            for metric in metrics - missing.get(device, set()):
                due = count * (2 if metric == "gpu.process_mem" else 1)
                told = values.get((metric, device), Counter()).total()
                assert told == due, (*where, metric, device, told)
                had += due
    return had


def _check(fault: Fault, phase: str, values: dict[tuple[str, str], Counter[float]],
           ticks: dict[str, int], missing: dict[str, set[str]]) -> None:
    older = {"gpu.mem_reserved"} if "MemoryInfo_v2 13" in " ".join(fault.call.plan) else set()
    missing = {device: missing.get(device, set()) | older for device in (*CARDS, *SLICES)}
    check(values, ticks, missing, fault.values, (fault.call.symbol, fault.call.plan, fault.kind, phase))


def _one_line_each(fault: Fault, during: list[tuple[str, str, str]], after: list[tuple[str, str, str]],
                   lost: set[tuple[str, str]]) -> None:
    """One line of a device and field that says what is wrong, and one that it is over."""
    where = fault.call.symbol, fault.call.plan, fault.kind
    begun, ended = (Counter((device, field) for _, device, field in events) for events in (during, after))
    kinds = {kind for kind, _, _ in during}
    assert kinds <= {"field_absent", "implausible", "device_lost", "nvlink"}, (*where, during)
    assert {kind for kind, _, _ in after} <= {"field_back", "device_back"}, (*where, after)
    assert not lost or begun or fault.quiet, (*where, lost)
    for counts in begun, ended:
        assert set(counts.values()) <= {1}, (*where, during, after)
    told = Counter({key: n for key, n in begun.items() if ("nvlink", *key) not in during})
    assert told == ended, (*where, during, after)


def _no_invented_property(world: World, fault: Fault) -> None:
    """What is kept of a device is as the plan has it, or not there."""
    for device, properties in world.child.do("properties").items():
        for name, value in properties.items():
            good = PROPERTIES[device.partition("/")[1]].get(name, ...)
            if good is not ... and value is not None:
                assert value == good, (fault.call.symbol, fault.kind, device, name)


def _from_the_start(world: World, fault: Fault) -> None:
    world.set(*fault.call.plan, *fault.lines, lacking=fault.lacking)
    missing = fault.may_miss(start=True)
    if not world.open():
        assert fault.call.vital
        missing = dict.fromkeys((*CARDS, *SLICES), set().union(*wanted("fast").values(),
                                                               *wanted("slow").values()))
    _check(fault, "first ticks", world.news()[0], {}, missing)
    _no_invented_property(world, fault)
    world.read(FASTS, SLOWS, 0.1)
    _check(fault, "from the start", world.news()[0], {"fast": FASTS, "slow": SLOWS}, missing)
    if fault.kind == "hang":
        world.set(*fault.call.plan)
        assert world.child.do("settle")


def _while_it_runs(world: World, fault: Fault) -> None:
    world.news()
    world.set(*fault.call.plan, *fault.lines, lacking=fault.lacking)
    world.read(FASTS, SLOWS, 0.1)
    world.read(0, 1, 0.1)  # in which a call that hangs is told
    values, during = world.news()
    _check(fault, "while it runs", values, {"fast": FASTS, "slow": SLOWS + 1}, fault.may_miss(start=False))
    lost = {(metric, device) for source in ("fast", "slow") for device, metrics in wanted(source).items()
            for metric in metrics - {"gpu.mem_reserved"} if (metric, device) not in values}
    world.set(*fault.call.plan)
    if fault.kind == "hang":
        assert world.child.do("settle")
    world.read(1, 2, 61.0)
    _, after = world.news()
    _one_line_each(fault, during, after, lost)
    world.read(1, 1, 61.0)
    values, after = world.news()
    _check(fault, "when it is over", values, {"fast": 1, "slow": 1}, {})
    assert after == []


def _named() -> set[str]:
    """Functions of the binding that the sources name, without their version."""
    name = re.compile(r"\bnvml(?:Init|Shutdown|Error|System|Device|Gpm|Event)[A-Z]\w*?(?=(?:_v\d)?\b)")
    return {found for path in SOURCES.glob("*.py") if "amd" not in path.name
            for found in name.findall(path.read_text()) if found != "nvmlDeviceGet"}  # of a name put together


def test_every_symbol_that_is_asked_for_is_in_the_table(start_nvml: Start) -> None:
    """A new call of the product fails here until CALLS has it, with what it costs when it fails."""
    table = {call.symbol for call in CALLS}
    world = World(start_nvml(*PLAN))
    for lines in {call.plan for call in CALLS} | {("ret nvmlDeviceRegisterEvents 12345",)}:
        world.set(*lines)
        world.open()
        world.read(1, 1, 1.0)
        world.set(*lines, "ret_all 1")
        world.read(1, 1, 1.0)
    assert set(world.child.do("asked")) == table
    unversioned = {re.sub(r"_v\d$|WithFlags$", "", symbol) for symbol in table}
    assert _named() <= unversioned, _named() - unversioned


@pytest.mark.parametrize("check", [_from_the_start, _while_it_runs])
def test_every_call_fails_in_some_way(start_nvml: Start, check: Callable[[World, Fault], None]) -> None:
    """Each call, and each kind of failure; the slow test beside it has all kinds of all calls."""
    chosen = faults(FEW)[::17]
    assert {fault.call for fault in chosen} == {call for call in CALLS if call.symbol != "nvmlErrorString"}
    assert {fault.kind for fault in chosen} >= {"missing", "hang", *(f"junk {word}" for word in JUNK)}
    _all(World(start_nvml(*PLAN)), chosen, check)


@pytest.mark.slow
@pytest.mark.parametrize("check", [_from_the_start, _while_it_runs])
def test_every_call_fails_in_every_way(start_nvml: Start, check: Callable[[World, Fault], None]) -> None:
    _all(World(start_nvml(*PLAN)), faults(CODES), check)


def _all(world: World, chosen: list[Fault], check: Callable[[World, Fault], None]) -> None:
    plan: tuple[str, ...] | None = None
    for fault in chosen:
        if check is _while_it_runs and fault.call.plan != plan:
            plan = fault.call.plan
            world.set(*plan)
            assert world.open()
        check(world, fault)
    kinds = Counter(fault.kind.split(" ")[0] for fault in chosen)
    print(f"{len(chosen)} faults of {len({f.call.symbol for f in chosen})} symbols: {dict(kinds)}")
