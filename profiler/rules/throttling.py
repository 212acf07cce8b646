"""The GPU ran below its clocks."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.series import THROTTLE_REASONS
from profiler.rules.base import Evidence, Finding, Outcome, plural

NAME = "throttling"
TITLE = "Throttling"
WORTH = 0.01
POWER_CAP = 0x04


def check(facts: Facts) -> Outcome:
    """A power cap is how a busy GPU lives and only told; heat and brakes are warnings."""
    if facts.device is None or facts.loop_ns is None:
        return Outcome(lacks="no GPU was watched" if facts.on_device else "the loop runs on the CPU")
    if "gpu.util" not in facts.live and not facts.throttles:
        return Outcome(lacks="NVML gave no throttle reasons")
    loop = (facts.loop_ns[1] - facts.loop_ns[0]) / 1e9
    share = facts.throttled_ns / 1e9 / loop
    if share < WORTH:
        return Outcome(ruled_out=f"{facts.throttled_ns / 1e9:.1f} s of {loop:.0f} s")
    mask = 0
    for span in facts.throttles:
        mask |= span.mask
    reasons = [text for bit, text in THROTTLE_REASONS.items() if mask & bit]
    hard = bool(mask & ~POWER_CAP)
    left_out = facts.steady.left_out.get("throttled", 0)
    evidence = [Evidence("Throttled", facts.throttled_ns / 1e9, "s", "NVML"),
                Evidence("Of the loop's time", share, "share", "NVML"),
                Evidence(", ".join(reasons), len(facts.throttles), "intervals", "NVML")]
    for metric, text, unit in (("gpu.temperature", "Temperature", "degC"), ("gpu.power", "Power", "W"),
                               ("gpu.clock_sm", "SM clock", "MHz")):
        if metric in facts.live:
            evidence.append(Evidence(text, facts.live[metric], unit, "NVML"))
    return Outcome((Finding(
        NAME, f"Throttled: {reasons[0]}" if len(reasons) == 1 else "Throttled", "warning" if hard else "info",
        evidence=tuple(evidence),
        counter_evidence=(Evidence(f"{plural(left_out, 'step')} of these times are left out of the medians"),)
        if left_out else (),
        advice="Better cooling, or a lower power limit that can be held." if hard else
        "The power limit holds the clocks down; fewer watts per step (lower precision) raise them."),))
