"""Copies of the batch to the device that nothing hides: which memory they come from, how large, how fast."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.facts import Facts
from profiler.analysis.link import link_rate
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms

NAME = "transfer_bound"
TITLE = "Copies to the device"
WORTH = 0.03
FULL = 0.7  # of the link's rate, from which copies are as fast as can be
SMALL, MANY = 64 << 10, 16  # bytes of a copy, and so many of them a step
JOIN = "Join what a batch is made of into few tensors before the copy: each one has a cost of its own."
AHEAD = "Copy one batch ahead with non_blocking=True"


@dataclass(frozen=True)
class Moved:
    """Copies of one step. `rate` in B/s on the device, `link` what could be; None where not known."""

    count: float | None
    bytes: float | None
    rate: float | None
    link: float | None
    link_name: str
    pageable: bool | None

    @property
    def full(self) -> bool:
        return self.rate is not None and self.link is not None and self.rate >= FULL * self.link

    @property
    def crumbs(self) -> bool:
        return self.count is not None and self.bytes is not None and self.count >= MANY \
            and self.bytes < SMALL * self.count


def check(facts: Facts) -> Outcome:
    """Lacks steady steps; ruled out on a CPU run and where copies take less than 3 % of the step."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.on_device:
        return Outcome(ruled_out="the CPU is the device: nothing is copied")
    if shares.share("transfer") < WORTH:
        return Outcome(ruled_out=f"{ms(shares.transfer):.1f} of {ms(summary.step_ns):.1f} ms per step")
    moved = moved_by(facts)
    title, remedy, advice = _against(facts, moved)
    # How fast pinned copies are here was not measured: the gain is that of no copy at all.
    gain, scenario = shares.gain("transfer"), "no_transfer"
    if remedy and remedy.setting == "prefetch_to_device":
        rest = max(shares.step_ns - shares.transfer, shares.transfer, 1.0)
        gain, scenario = shares.step_ns / rest, "overlapped_transfer"
    unsure = Evidence("Without device times, the copy's share of the h2d stage is not known")
    return Outcome((Finding(
        NAME, title, "error" if shares.share("transfer") >= 0.15 else "warning", ms(shares.transfer),
        evidence=_evidence(facts, moved), counter_evidence=() if shares.measured else (unsure,),
        remedy=remedy, advice="" if remedy else advice, site=facts.site("h2d"),
        prediction=Prediction(scenario, gain, 1.0, gain, at_most=True) if remedy else None),))


def moved_by(facts: Facts) -> Moved:
    """What the probe saw of the copies, and the device's link."""
    copies, summary = facts.readings.copies, facts.summary
    link = link_rate(facts.device.properties) if facts.device else None
    took = summary.device.get("h2d", 0.0) if summary else 0.0
    pinned, asked = copies.pinned if copies else None, facts.loader.get("pin_memory")
    pageable = pinned < 0.5 if pinned is not None else not asked if asked is not None else None
    return Moved(copies.count if copies else None, copies.bytes if copies else None,
                 copies.bytes * 1e9 / took if copies and took else None, link[0] if link else None,
                 link[1] if link else "", pageable)


def _against(facts: Facts, moved: Moved) -> tuple[str, Remedy | None, str]:
    """Title, what can be tried, and advice where nothing can."""
    asked = facts.loader.get("pin_memory")
    if moved.crumbs:
        return "Many small copies", None, JOIN
    if moved.pageable and asked is False:
        return "Pageable copies: pin_memory on", Remedy("pin_memory", False, True), ""
    if moved.pageable and asked:
        return "Pageable copies, though the loader pins", None, \
            "Something between the loader and the copy makes new tensors: copy what the loader gives, and " \
            "give batches of an own class a pin_memory()."
    ahead = Remedy("prefetch_to_device", False, True) \
        if facts.settings and facts.settings.get("prefetch_to_device") is False \
        and (facts.settings.get("pin_memory") or asked) else None
    if moved.full:
        return "Copies as fast as the link", ahead, f"Copy less: a smaller type (uint8), decode or crop " \
            f"before the copy, drop what is not used. {AHEAD}."
    return "Copies of the batch take time", ahead, \
        f"{AHEAD} on a stream of its own, or in a smaller type (uint8)."


def _evidence(facts: Facts, moved: Moved) -> tuple[Evidence, ...]:
    summary, copies, asked = facts.summary, facts.readings.copies, facts.loader.get("pin_memory")
    assert summary is not None
    found = [Evidence("Host time in h2d", ms(summary.stages["h2d"]), "ms")]
    if "h2d" in summary.device:
        found.append(Evidence("Copy on the device", ms(summary.device["h2d"]), "ms", "CUDA events"))
    if moved.bytes is not None and moved.count:
        found.append(Evidence("Copied per step", moved.bytes, "B"))
        found.append(Evidence("Copies per step", moved.count, "count"))
    if moved.rate is not None:
        found.append(Evidence("Rate of the copies, launching included", moved.rate, "B/s",
                              "probe, CUDA events"))
    if moved.link is not None:
        found.append(Evidence(f"{moved.link_name} could carry", moved.link, "B/s", "NVML"))
    if "gpu.pcie_rx" in facts.live:
        found.append(Evidence("PCIe to the GPU", facts.live["gpu.pcie_rx"], "B/s", "NVML"))
    if copies and copies.pinned is not None:
        found.append(Evidence("Of the bytes from pinned memory", copies.pinned, "share"))
    if copies and copies.blocking is not None:
        found.append(Evidence("Of the bytes copied without non_blocking", copies.blocking, "share"))
    if asked is not None:
        found.append(Evidence(f"pin_memory is {'on' if asked else 'off'}"))
    return tuple(found)
