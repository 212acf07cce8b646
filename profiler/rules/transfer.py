"""Copies of the batch to the device that nothing hides, and pinned memory against them."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms

NAME = "transfer_bound"
TITLE = "Copies to the device"
WORTH = 0.03


def check(facts: Facts) -> Outcome:
    """Lacks steady steps; ruled out on a CPU run and where copies take less than 3 % of the step."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.on_device:
        return Outcome(ruled_out="the CPU is the device: nothing is copied")
    if shares.share("transfer") < WORTH:
        return Outcome(ruled_out=f"{ms(shares.transfer):.1f} of {ms(summary.step_ns):.1f} ms per step")
    pinned = facts.loader.get("pin_memory")
    evidence = [Evidence("Host time in h2d", ms(summary.stages["h2d"]), "ms")]
    if "h2d" in summary.device:
        evidence.append(Evidence("Copy on the device", ms(summary.device["h2d"]), "ms", "CUDA events"))
    if "gpu.pcie_rx" in facts.live:
        evidence.append(Evidence("PCIe to the GPU", facts.live["gpu.pcie_rx"], "B/s", "NVML"))
    if pinned is not None:
        evidence.append(Evidence(f"pin_memory is {'on' if pinned else 'off'}"))
    # How fast pinned copies are here was not measured: the gain is that of no copy at all.
    gain = shares.gain("transfer")
    remedy = Remedy("pin_memory", False, True) if pinned is False else None
    unsure = Evidence("Without device times, the copy's share of the h2d stage is not known")
    return Outcome((Finding(
        NAME, "Pageable copies: pin_memory on" if remedy else "Copies of the batch take time",
        "error" if shares.share("transfer") >= 0.15 else "warning", ms(shares.transfer),
        evidence=tuple(evidence), counter_evidence=() if shares.measured else (unsure,), remedy=remedy,
        prediction=Prediction("no_transfer", gain, 1.0, gain, at_most=True) if remedy else None,
        advice="" if remedy else "Copy one batch ahead with non_blocking=True, or in a smaller type (uint8).",
        site=facts.site("h2d")),))
