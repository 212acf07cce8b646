"""cuDNN takes its first guess for convolutions of one shape, which it could search the fastest for."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, Remedy

NAME = "cudnn_benchmark"
TITLE = "Search of convolutions"
MOST = 0.5  # share of the step in compute from which it matters


def check(facts: Facts) -> Outcome:
    """Lacks the probe's word on the model; ruled out without convolutions, or where shapes vary."""
    if facts.lacks or facts.estimate is None:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.on_device:
        return Outcome(ruled_out="the loop runs on the CPU")
    told, shapes = facts.readings.numerics, facts.readings.shapes
    if told.get("convolutions") is None or told.get("cudnn_benchmark") is None:
        return Outcome(lacks="the model's layers were not seen")
    if not told["convolutions"]:
        return Outcome(ruled_out="the model has no convolutions")
    if told["cudnn_benchmark"]:
        return Outcome(ruled_out="cuDNN searches already")
    if shapes is None:
        return Outcome(lacks="the shapes of the batches were not seen: a search for each would cost more")
    if shapes.vary:
        return Outcome(ruled_out=f"batches have {shapes.distinct} shapes: a search for each would cost more")
    share = facts.estimate.share("compute")
    if share < MOST:
        return Outcome(ruled_out=f"computing takes {100 * share:.0f} % of the step")
    return Outcome((Finding(
        NAME, "cuDNN may know faster convolutions", "info",
        evidence=(Evidence("torch.backends.cudnn.benchmark", "off"),
                  Evidence("Shapes of the batches", shapes.distinct, "count"),
                  Evidence("Share of the step in which the device computes", share, "share")),
        counter_evidence=(Evidence("Its guess is often the fastest: trying tells", source="not measured"),),
        remedy=Remedy("cudnn_benchmark", False, True), site=facts.site("forward")),))
