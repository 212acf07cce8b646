"""Batches that differ in shape: what is prepared for a shape is prepared anew.

The cost of a new shape is what steps that bring one take longer than steps whose shape came before,
measured, and the time in torch.compile after the warm-up. On a CPU a shape costs nothing but
compilation: there shapes are told and not blamed.
"""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.readings import Compiled, Shapes
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms

NAME = "shapes"
TITLE = "Shapes of batches"
WORTH, GRAVE = 0.05, 0.15  # of the step: from which a cost is a warning, a major one
COMPILES = 0.01  # of the steady steps' time in compilation, from which it is told without other shapes


def check(facts: Facts) -> Outcome:
    """Lacks what the probe saw of batches; ruled out where they have one shape and nothing compiles anew."""
    if facts.lacks or facts.summary is None:
        return Outcome(lacks=facts.lacks or "no steady step")
    shapes, compiled = facts.readings.shapes, facts.readings.compiled
    spent = compiled.ns / facts.summary.steady if compiled and compiled.graphs else 0.0
    again = spent >= COMPILES * facts.summary.step_ns > 0
    if not (shapes and shapes.vary) and not again:
        if shapes is None:
            return Outcome(lacks="no batch of a loader was seen")
        return Outcome(ruled_out="all batches have one shape" if shapes.distinct == 1 else
                       f"{100 * shapes.common:.0f} % of the batches have one shape")
    new = cost_of_new(facts, shapes) if shapes and shapes.vary else 0.0
    # Compiling is a part of what steps with a new shape take longer, where that was measured.
    cost = max(new, spent)
    share = cost / facts.summary.step_ns if facts.summary.step_ns else 0.0
    remedy = _remedy(facts, shapes) if facts.on_device or cost else None
    gain = 1 / max(1 - share, 0.01)
    title = f"Batches have {shapes.distinct} shapes" if shapes and shapes.vary else "Graphs compiled again"
    return Outcome((Finding(
        NAME, title, "error" if share >= GRAVE else "warning" if share >= WORTH else "info", ms(cost),
        evidence=_evidence(facts, shapes, compiled if again else None),
        counter_evidence=_against(facts, shapes), remedy=remedy,
        advice="" if remedy else "Fill batches up to one shape, or to one of a few (buckets by length); "
        "torch.compile with dynamic=True compiles once for all.",
        prediction=Prediction("no_host_work", gain, 1.0, gain, at_most=True) if remedy and cost else None,
        site=facts.site("loader") or facts.loader.get("site")),))


def cost_of_new(facts: Facts, shapes: Shapes) -> float:
    """ns a step that new shapes cost, of an accelerator's run; 0 where it was not measured."""
    if not facts.on_device or not shapes.excess_ns or facts.summary is None:
        return 0.0
    return max(0.0, shapes.excess_ns) * shapes.new / facts.summary.steady


def _remedy(facts: Facts, shapes: Shapes | None) -> Remedy | None:
    if not shapes or not shapes.vary:
        return None
    if facts.settings and facts.settings.get("static_shapes") is False:
        return Remedy("static_shapes", False, True)
    told = facts.readings.numerics
    if facts.on_device and told.get("cudnn_benchmark") and told.get("convolutions"):
        return Remedy("cudnn_benchmark", True, False)
    return None


def _evidence(facts: Facts, shapes: Shapes | None, compiled: Compiled | None) -> tuple[Evidence, ...]:
    found = []
    if shapes:
        found += [Evidence("Shapes of the first tensor", shapes.distinct, "count"),
                  Evidence("Batches with the most frequent one", shapes.common, "share"),
                  Evidence("Batches whose shape differs from the one before", shapes.changes / shapes.batches,
                           "share"),
                  Evidence("Smallest", _text(shapes.smallest)), Evidence("Largest", _text(shapes.largest)),
                  Evidence("Steady steps with a shape that was not there before", shapes.new, "count")]
        if shapes.excess_ns is not None and shapes.excess_ns > 0:
            found.append(Evidence("Such a step takes longer by", ms(shapes.excess_ns), "ms"))
    if compiled:
        found += [Evidence("Graphs compiled in the steady steps", compiled.graphs, "count", "torch._dynamo"),
                  Evidence("Compiling took, of the steady steps", ms(compiled.ns), "ms", "torch._dynamo")]
    if facts.on_device and facts.readings.numerics.get("cudnn_benchmark"):
        found.append(Evidence("cuDNN searches anew for each shape (torch.backends.cudnn.benchmark)", "on"))
    return tuple(found)


def _against(facts: Facts, shapes: Shapes | None) -> tuple[Evidence, ...]:
    if not shapes or not shapes.vary:
        return ()
    if not facts.on_device:
        return (Evidence("On a CPU a new shape costs nothing but compilation"),)
    found = [Evidence("Filled-up batches compute more: what it gives depends on how much is filling",
                      source="not measured")]
    if shapes.excess_ns is None:
        found.append(Evidence("Too few steps with known or with new shapes to measure what a new one costs"))
    elif shapes.excess_ns <= 0:
        found.append(Evidence("Steps with a new shape take no longer than the others"))
    return tuple(found)


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "not told"
