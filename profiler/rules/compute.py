"""The device computes nearly all the time: that is what a training should do."""

from __future__ import annotations

from profiler.analysis.estimate import WORK
from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, ms

NAME = "compute_bound"
TITLE = "Compute"
FULL = 0.85


def check(facts: Facts) -> Outcome:
    """Lacks device times on a CUDA run; ruled out where compute takes less than 85 % of the step."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not shares.measured and "gpu.util" not in facts.live:
        return Outcome(lacks="neither device times nor GPU utilization")
    share = shares.share("compute")
    if share < FULL:
        return Outcome(ruled_out=f"{100 * share:.0f} % of the step, below 85 %")
    times = summary.device if facts.on_device and shares.measured else summary.stages
    source = "CUDA events" if times is summary.device else "probe"
    evidence = [Evidence(stage, ms(times[stage]), "ms", source) for stage in WORK if times[stage]]
    for metric, text, unit in (("gpu.util", "GPU utilization", "share"), ("gpu.power", "Power", "W"),
                               ("gpu.clock_sm", "SM clock", "MHz")):
        if metric in facts.live:
            evidence.append(Evidence(text, facts.live[metric], unit, "NVML"))
    what = "The device" if facts.on_device else "The CPU"
    return Outcome((Finding(
        NAME, f"{what} computes {100 * share:.0f} % of the step", "info", ms(shares.compute),
        evidence=tuple(evidence),
        advice="What is left is the arithmetic: precision, compilation, a larger batch."),))
