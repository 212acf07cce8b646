"""Faults of several calls and devices at once, that come and go: what can be had is had at each tick."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.fakes.nvml_calls import CALLS, CARDS, CODES, JUNK, PLAN, SLICES, Call, Fault
from tests.sources.test_nvml_every_call import World, check

Start = Callable[..., Any]
# Of one device, and not of the way to a new handle: with those a device is lost when any other call loses it.
SINGLE = [call for call in CALLS if not (call.plan or call.everywhere or call.vital or call.slices)
          and call.symbol != "nvmlDeviceGetUUID"]
KINDS = (*(f"ret {code}" for code in CODES), *(f"junk {word}" for word in JUNK), "hang", "hang", "missing",
         "missing")
OF_HEALTH = ("ecc", "rows", "nvlink")


class At(Fault):
    """A fault of one card, or of all where the library lacks the call."""

    def __init__(self, call: Call, kind: str, card: str) -> None:
        super().__init__(call, kind)
        object.__setattr__(self, "card", card)

    @property
    def devices(self) -> tuple[str, ...]:
        if self.kind == "missing":
            return (*CARDS, *SLICES)
        return (self.card, *SLICES) if self.card == "2" else (self.card,)  # type: ignore[attr-defined]

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line.replace(":0 ", f":{self.card} ") for line in super().lines)  # type: ignore[attr-defined]


NONE = At(CALLS[0], "none", "0")


def _drawn(draw: random.Random) -> list[At]:
    """At most one fault of a call and card, and of no card two that would hide each other."""
    faults: dict[tuple[str, str], At] = {}
    for _ in range(draw.randrange(6)):
        call, card = draw.choice(SINGLE), draw.choice(CARDS)
        faults[call.symbol, card] = At(call, draw.choice(KINDS), card)
    lacking = {symbol for (symbol, _), fault in faults.items() if fault.kind == "missing"}
    return [fault for (symbol, _), fault in faults.items()
            if symbol not in lacking or fault.kind == "missing"]


def _ticks(start_nvml: Start, ticks: int, seed: int) -> None:
    draw = random.Random(seed)
    world = World(start_nvml(*PLAN))
    world.set()
    assert world.open()
    world.news()
    done, had, kinds = 0, 0, Counter[str]()
    while done < ticks:
        faults = _drawn(draw)
        fast, slow = draw.randrange(10, 40), draw.randrange(1, 3)
        world.set(*(line for fault in faults for line in fault.lines),
                  lacking=tuple(symbol for fault in faults for symbol in fault.lacking))
        world.read(fast, slow, 0.1)
        values, during = world.news()
        had += _check(faults, values, {"fast": fast, "slow": slow}, f"seed {seed}, after {done} ticks")
        begun = Counter((device, field) for kind, device, field in during if kind not in OF_HEALTH)
        assert set(begun.values()) <= {1, 2}, during  # 2: of two calls of one field the other fails first
        world.set()
        assert world.child.do("settle")
        world.read(1, 2, 61.0)  # all that was away is asked again
        world.news()
        done += fast + 1
        kinds.update(fault.kind for fault in faults)
    assert all(kinds[kind] for kind in KINDS) or ticks < 10_000
    print(f"{done} ticks, {sum(kinds.values())} faults of {len(kinds)} kinds, {had} samples that had to come")


def _check(faults: Sequence[Fault], values: dict[tuple[str, str], Counter[float]], ticks: dict[str, int],
           where: str, start: bool = False) -> int:
    """As `check`, with all these faults at once."""
    said = (where, [(fault.call.symbol, fault.kind, fault.devices) for fault in faults])

    def right(metric: str, device: str) -> set[float]:
        return {value for fault in (*faults, NONE) for value in fault.values(metric, device)}

    missing: dict[str, set[str]] = {}
    for fault in faults:
        for device, metrics in fault.may_miss(start).items():
            missing[device] = missing.get(device, set()) | metrics
    return check(values, ticks, missing, right, said)


def test_a_thousand_ticks_of_faults_that_come_and_go(start_nvml: Start) -> None:
    _ticks(start_nvml, 1000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_ten_thousand_ticks_of_faults_that_come_and_go(start_nvml: Start, seed: int) -> None:
    _ticks(start_nvml, 10_000, seed)


@pytest.mark.parametrize("seed", range(2))
def test_drivers_that_lack_any_set_of_calls(start_nvml: Start, seed: int) -> None:
    """Of those without which there is a device at all; what stands in for a call may be gone too."""
    draw = random.Random(seed)
    world = World(start_nvml(*PLAN))
    spare = [call for call in CALLS if not call.vital]
    for number in range(15):
        lacking = draw.sample(spare, draw.randrange(1, 30))
        world.set(lacking=tuple(call.symbol for call in lacking))
        assert world.open()
        world.news()
        world.read(5, 2, 0.1)
        values, told = world.news()
        _check([Fault(call, "missing") for call in lacking], values, {"fast": 5, "slow": 2},
               f"seed {seed}, set {number}", start=True)
        assert told == []  # each was told at the first tick
