"""The card's link to the host is slower than the card: fewer lanes, or an older slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.analysis.facts import Facts
from profiler.analysis.link import link_rate
from profiler.rules.base import Evidence, Finding, Outcome, ms

NAME = "pcie_slot"
TITLE = "Slot of the card"
FULL = 0.99  # of what the card could have, from which nothing is missing
AWAKE = 0.1  # utilization below which a card saves power on its link
WORTH = 0.03  # of the step: copies that a faster link would shorten


def check(facts: Facts) -> Outcome:
    """By the fastest state that the link was in during the steady steps: an idle card slows its link down."""
    if facts.card is None:
        return Outcome(lacks=facts.no_gpu)
    now, could = _now(facts.live), _possible(facts.card.properties)
    if now is None or could is None:
        return Outcome(lacks="NVML did not tell what the PCIe link runs at")
    (rate, name), (best, best_name) = now, could
    if rate >= FULL * best:
        return Outcome(ruled_out=f"{name}, all that the card can")
    if facts.live.get("gpu.util", 0.0) < AWAKE:
        return Outcome(lacks="the card was not seen busy, and an idle one slows its link down")
    shares = facts.estimate
    copies = shares.transfer if shares is not None else None
    costs = shares is not None and not facts.lacks and shares.share("transfer") >= WORTH
    evidence = [Evidence(f"The link, {name}, carries", rate, "B/s", "NVML"),
                Evidence(f"The card could have {best_name}", best, "B/s", "NVML")]
    against: list[Evidence] = []
    if copies is not None and not facts.lacks:
        told = Evidence("Copies that nothing hides, per step", ms(copies), "ms")
        (evidence if costs else against).append(told)
    if costs:
        against.append(Evidence("Pageable copies are held back by the host's memory before the link"))
    return Outcome((Finding(
        NAME, f"The card's link is {name} and could be {best_name}", "warning" if costs else "info",
        ms(copies) * (1 - rate / best) if costs and copies is not None else 0.0,
        evidence=tuple(evidence), counter_evidence=tuple(against),
        advice="Another slot, no riser, or the firmware's settings may give the card its whole link; some "
               "machines have no faster slot."),))


def _now(live: Mapping[str, float]) -> tuple[float, str] | None:
    generation, width = live.get("gpu.pcie_gen"), live.get("gpu.pcie_width")
    if generation is None or width is None:
        return None
    return link_rate({"pcie_gen": int(generation), "pcie_width": int(width)})


def _possible(properties: Mapping[str, Any]) -> tuple[float, str] | None:
    """Of the card in the best slot: its own generation where that is told."""
    generation = properties.get("pcie_gen_card") or properties.get("pcie_gen")
    return link_rate({"pcie_gen": generation, "pcie_width": properties.get("pcie_width")})
