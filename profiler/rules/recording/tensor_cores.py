"""Products in float32 on a device whose tensor cores would do them as TF32 or bfloat16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.analysis.facts import Facts
from profiler.model import mapping
from profiler.rules.base import Evidence, Finding, Outcome, Remedy

NAME = "tensor_cores"
TITLE = "Tensor cores"
AMPERE = 8  # compute capability: float32 as TF32, and bfloat16
MOST = 0.5  # share of the weights, or of the step in compute, from which it matters


def capability(facts: Facts) -> int | None:
    """Major compute capability of the device; None where NVML does not tell."""
    text = str(facts.device.properties.get("compute_capability", "")) if facts.device else ""
    major = text.partition(".")[0]
    return int(major) if major.isdigit() else None


def main_type(numerics: Mapping[str, Any]) -> tuple[str, float] | None:
    """(data type of most weights, their share); None where nothing was told of weights."""
    told = mapping(numerics.get("weights"))
    weights = {str(name): size for name, size in told.items() if isinstance(size, int) and size > 0}
    if not weights:
        return None
    most = max(weights, key=lambda name: weights[name])
    return most, weights[most] / sum(weights.values())


def check(facts: Facts) -> Outcome:
    """Lacks the probe's word; ruled out with autocast, other types, TF32, or a device that has none."""
    if facts.lacks or facts.estimate is None:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.on_device:
        return Outcome(ruled_out="the loop runs on the CPU")
    told = facts.readings.numerics
    weights = main_type(told)
    if weights is None:
        return Outcome(lacks="the types of the weights were not seen")
    if told.get("autocast"):
        return Outcome(ruled_out=f"autocast computes in {told['autocast']}")
    if weights[0] != "float32" or weights[1] <= MOST:
        return Outcome(ruled_out=f"{100 * weights[1]:.0f} % of the weights are {weights[0]}")
    major = capability(facts)
    if major is None:
        return Outcome(lacks="what the device can do was not told")
    if major < AMPERE:
        return Outcome(ruled_out="the device has no tensor cores for float32 (float16 by autocast may help)")
    if told.get("matmul_precision") != "highest":
        return Outcome(ruled_out=f"products run at precision {told.get('matmul_precision')}")
    return Outcome((_finding(facts, weights[1]),))


def _finding(facts: Facts, share: float) -> Finding:
    told, shares = facts.readings.numerics, facts.estimate
    assert shares is not None
    convolves = bool(told.get("convolutions") and told.get("cudnn_tf32"))
    computes = shares.share("compute") >= MOST
    against = [Evidence("TF32 keeps 10 bits of a float32's 23: check that the loss stays the same",
                        source="torch"),
               Evidence("Autocast that a model switches on inside itself is not seen")]
    if convolves:
        against.append(Evidence("Convolutions run as TF32 already; other products do not", source="torch"))
    if not computes:
        against.append(Evidence("Most of the step goes to other things than computing"))
    return Finding(
        NAME, "float32 products beside the tensor cores", "warning" if computes and not convolves else "info",
        evidence=(Evidence("Weights in float32", share, "share"),
                  Evidence("torch.get_float32_matmul_precision()", "highest"),
                  Evidence("Autocast at the call of the model", "off"),
                  Evidence("The device computes, of the step", shares.share("compute"), "share")),
        counter_evidence=tuple(against), remedy=Remedy("matmul_precision", "highest", "high"),
        advice="Or autocast to bfloat16, which halves the memory of activations too.",
        site=facts.site("forward"))
