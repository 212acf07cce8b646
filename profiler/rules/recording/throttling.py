"""The GPU ran below its clocks: heat, brakes, or its power limit; and what that cost."""

from __future__ import annotations

import numpy as np

from profiler.analysis.facts import Facts
from profiler.analysis.series import POWER_CAP, IntArray, covered, overlaps
from profiler.analysis.steady import FEWEST
from profiler.model import STEP_EPOCH_FIRST, STEP_PROFILED
from profiler.rules.base import Evidence, Finding, Outcome, ms, plural

NAME = "throttling"
TITLE = "Throttling"
WORTH = 0.01
KNOWN = 0.95  # of the loop's time, below which it is said how much of it is known
LOWERED = 0.95  # of the highest clock, below which a setting holds it down
NEAR, BUSY = 0.03, 0.5  # of the clock to the setting; utilization, below which a card slows down by itself


def check(facts: Facts) -> Outcome:
    """A power cap is how a busy GPU lives and only told; heat and brakes are warnings."""
    if facts.device is None or facts.loop_ns is None:
        return Outcome(lacks=facts.no_gpu)
    known = facts.throttle_known_ns / 1e9
    loop = (facts.loop_ns[1] - facts.loop_ns[0]) / 1e9
    share = facts.throttled_ns / 1e9 / known if known else 0.0
    if share < WORTH and (held := _held(facts)) is not None:
        return Outcome((held,))
    if not known:
        return Outcome(lacks="NVML gave no throttle reasons")
    if share < WORTH:
        of = f"{loop:.0f} s" if known > KNOWN * loop else f"the {known:.1f} s of {loop:.0f} s that are known"
        return Outcome(ruled_out=f"{facts.throttled_ns / 1e9:.1f} s of {of}")
    reasons, beyond = facts.throttles.by_reason, facts.throttles.of(~POWER_CAP)
    hard = covered(beyond, *facts.loop_ns) >= WORTH * facts.throttle_known_ns
    left_out = facts.steady.left_out.get("throttled", 0)
    evidence = [Evidence("Throttled", facts.throttled_ns / 1e9, "s", "NVML"),
                Evidence("Of the loop's time" if known > KNOWN * loop else
                         f"Of the {known:.1f} s of the loop's {loop:.0f} s in which reasons were read",
                         share, "share", "NVML")]
    evidence += [Evidence(f"{reason}, in {plural(len(times), 'interval')}",
                          float(np.diff(times, axis=1).sum()) / 1e9, "s", "NVML")
                 for reason, times in reasons.items()]
    evidence += _of_device(facts)
    slow, usual, cost = slowed(facts, beyond if hard else facts.throttles.of(-1))
    if slow is not None and usual is not None:
        evidence += [Evidence("Steps in these times, median", ms(slow), "ms", "probe, NVML"),
                     Evidence("Other steps, median", ms(usual), "ms", "probe, NVML")]
    return Outcome((Finding(
        NAME, f"Throttled: {next(iter(reasons))}" if len(reasons) == 1 else "Throttled",
        "warning" if hard else "info", ms(cost) if hard else 0.0, evidence=tuple(evidence),
        counter_evidence=(Evidence(f"{plural(left_out, 'step')} of these times are left out of the medians"),)
        if left_out else (),
        advice=_advice(facts, hard)),))


def _advice(facts: Facts, hard: bool) -> str:
    if hard:
        return "Better cooling, or a lower power limit that can be held."
    limits = _limits(facts)
    lowered = limits.get("power_limit_w", 0.0) < limits.get("power_limit_default_w", 0.0)
    text = "somebody lowered the limit, and nvidia-smi -pl sets it; " if lowered else ""
    return f"The power limit holds the clocks down; {text}fewer watts per step (lower precision) raise them."


def _limits(facts: Facts) -> dict[str, float]:
    """The numbers among the card's properties."""
    properties = facts.card.properties if facts.card is not None else {}
    return {name: value for name, value in properties.items() if type(value) in (int, float)}


def slowed(facts: Facts, times: IntArray) -> tuple[float | None, float | None, float]:
    """(median step in these `times` [k, 2], of the other steps, what a step costs more in the mean), ns.

    Steps after the warm-up. The medians are None without three steps of each.
    """
    steps = facts.steps
    since = facts.steady.warm_up_end_ns
    usual = steps.training & (steps.flags & (STEP_EPOCH_FIRST | STEP_PROFILED) == 0)
    usual &= steps.t0_ns >= since if since is not None else False
    slow = usual & overlaps(steps.t0_ns, steps.t1_ns, times)
    other = usual & ~slow
    if min(slow.sum(), other.sum()) < FEWEST:
        return None, None, 0.0
    wall = steps.wall
    inside, outside = float(np.median(wall[slow])), float(np.median(wall[other]))
    return inside, outside, max(0.0, inside - outside) * float(slow.sum() / usual.sum())


def _held(facts: Facts) -> Finding | None:
    """Where the clock stays at what was set for applications, below what the card can: no throttling."""
    limits, now = _limits(facts), facts.live.get("gpu.clock_sm", 0.0)
    wanted, most = limits.get("app_clock_sm", 0.0), limits.get("max_clock_sm", 0.0)
    busy = facts.live.get("gpu.util", 0.0) >= BUSY
    if not busy or not 0 < wanted < LOWERED * most or abs(now / wanted - 1) > NEAR:
        return None
    return Finding(
        NAME, "The SM clock is held down by a setting", "info", evidence=tuple(_of_device(facts)),
        advice="nvidia-smi -rac gives the clocks back; somebody may have set them for steady times.")


def _of_device(facts: Facts) -> list[Evidence]:
    assert facts.device is not None
    card = facts.card or facts.device
    limits = _limits(facts)
    limit, usual = limits.get("power_limit_w"), limits.get("power_limit_default_w")
    usual = usual if limit and usual and usual > limit else None  # only where somebody has lowered it
    wanted, most = limits.get("app_clock_sm"), limits.get("max_clock_sm")
    wanted = wanted if wanted and most and wanted < most else None
    source = "NVML" if card is facts.device else "NVML, of the whole card"
    rows = (("Temperature", facts.live.get("gpu.temperature"), "degC"),
            ("Power", facts.live.get("gpu.power"), "W"),
            ("Power limit", limit, "W"), ("Power limit that the card comes with", usual, "W"),
            ("SM clock", facts.live.get("gpu.clock_sm"), "MHz"),
            ("SM clock set for applications", wanted, "MHz"), ("Highest SM clock", most, "MHz"))
    return [Evidence(text, value, unit, source) for text, value, unit in rows if value is not None]
