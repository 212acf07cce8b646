"""The device waits for the host: Python, dispatch and launching, or work beside the step."""

from __future__ import annotations

from profiler.analysis.estimate import WORK, Estimate, behind
from profiler.analysis.facts import Facts
from profiler.analysis.pauses import Cause, measured
from profiler.rules.base import Evidence, Finding, Outcome, ms, plural
from profiler.rules.recording.stalls import ADVICE
from profiler.rules.recording.stalls import TITLES as STALLS

NAME = "host_bound"
TITLE = "Host work"
WORTH = 0.05
MOSTLY = 0.5  # of the host's time, from which it is called by what takes it
WORTH_ON_CPU = 0.15  # less may be the loss, zero_grad and the like: arithmetic too, of the same CPU


def doubt(facts: Facts) -> str:
    """Why what a CPU run does outside the stages cannot be called host work; "" when it can."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.on_device:
        return ""
    if summary.stages["backward"] and not summary.stages["forward"]:
        return ("no call of a model was seen, as where a compiled function holds it: "
                "its forward is counted under other")
    if shares.share("host") >= WORTH_ON_CPU or pausing(facts) >= WORTH:
        return ""
    return "loss and zero_grad are in it"


def pausing(facts: Facts) -> float:
    """Share of the steps' time that recurring stalls spend outside the stages, in collections, in saves."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or not summary.recurring.any():
        return 0.0
    inside = shares.host - summary.stages["other"]  # of stages that compute, on a CPU run
    return (summary.recurring_ns["other"] + max(0.0, inside)) / summary.step_ns


def check(facts: Facts) -> Outcome:
    """Lacks device times on a CUDA run; ruled out where the host takes less than 5 % of the step."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not shares.measured and "gpu.util" not in facts.live:
        return Outcome(lacks="neither device times nor GPU utilization: launching and waiting look alike")
    if unclear := doubt(facts):
        return Outcome(lacks=unclear) if shares.share("host") >= WORTH_ON_CPU else Outcome(
            ruled_out=f"{ms(shares.host):.1f} of {ms(summary.step_ns):.1f} ms per step, {unclear}")
    if shares.share("host") < WORTH:
        return Outcome(ruled_out=f"{ms(shares.host):.1f} of {ms(summary.step_ns):.1f} ms per step")
    evidence = [Evidence("Host time outside all stages", ms(summary.stages["other"]), "ms")]
    against = []
    if facts.on_device:
        if "gpu.util" in facts.live:
            evidence.append(Evidence("GPU utilization", facts.live["gpu.util"], "share", "NVML"))
        for stage in WORK if shares.measured else ():
            evidence.append(Evidence(f"Device behind the host at the end of {stage}",
                                     ms(max(0.0, behind(summary, stage))), "ms", "CUDA events"))
        against.append(Evidence("Without a trace, kernels that run while the host launches others "
                                "cannot be told from idle time"))
    if summary.syncs:
        evidence.append(Evidence("Blocking scalar reads per step", summary.syncs, "count"))
        evidence.append(Evidence("Time in them", ms(summary.sync or 0.0), "ms"))
    if summary.recurring.any():
        against.append(Evidence("Of it in steps that stall", ms(summary.recurring_ns["other"]), "ms"))
    pause = _pause(facts, shares)
    if pause:
        text = f"Of it {STALLS[pause.kind]}, in {plural(pause.steps, 'step')}"
        evidence.append(Evidence(text, ms(pause.ns), "ms"))
    advice = ("Give the device more work per launch: a larger batch, torch.compile, CUDA graphs."
              if facts.on_device else
              "Look at what the loop does outside data, forward, backward and optimizer: logging, metrics.")
    title = "The device waits for the host" if facts.on_device else "The loop works outside the stages"
    site = facts.site("sync") if summary.syncs else None
    if pause:
        title, advice, site = f"{title}: {STALLS[pause.kind]}", ADVICE[pause.kind], pause.site or site
    return Outcome((Finding(
        NAME, title,
        "error" if shares.share("host") >= 0.15 else "warning", ms(shares.host), evidence=tuple(evidence),
        counter_evidence=tuple(against), advice=advice, site=site),))


def _pause(facts: Facts, shares: Estimate) -> Cause | None:
    """The collections or saves that are half of the host's time. None where stalls with a rhythm are told."""
    if facts.summary is None or facts.summary.recurring.any():
        return None
    counted = facts.steps.select(facts.steady.mask).select(~facts.summary.stalls)
    found = measured(facts.pauses, counted)
    return found if found is not None and found.ns >= MOSTLY * shares.host else None
