"""Matrix work that does not run on tensor cores."""

from __future__ import annotations

from profiler.rules.base import Evidence, Finding, Outcome, Remedy, ms
from profiler.rules.trace.evidence import SOURCE, unit
from profiler.rules.trace.facts import TraceFacts

NAME = "tensor_cores"
TITLE = "Tensor cores"
VOLTA, AMPERE = 7, 8  # compute capabilities: fp16 on tensor cores, and float32 as TF32
WORTH = 0.10  # share of the window in matrix work without them, from which it is a finding


def check(facts: TraceFacts) -> Outcome:
    """Lacks kernels; ruled out where matrix work beside the tensor cores takes less than 10 % of the step."""
    if facts.lacks or not facts.on_device:
        return Outcome(lacks=facts.lacks or "no accelerator in the trace")
    major = facts.properties.get("computeMajor")
    if isinstance(major, int) and major < VOLTA:
        return Outcome(ruled_out="the device has none")
    told = facts.kernel_summary
    if told.tensor_cores is None or told.tensor_cores_possible is None:
        return Outcome(lacks="the trace has no kernel in the steps")
    beside = max(0.0, told.tensor_cores_possible - told.tensor_cores)
    idle = beside * told.total_ns / max(len(facts.windows), 1)
    used = f"{100 * told.tensor_cores:.0f} % of kernel time is known to use them"
    if idle < WORTH * facts.shares.window:
        return Outcome(ruled_out=used)
    return Outcome((Finding(
        NAME, "Matrix work runs beside the tensor cores", "warning", ms(idle),
        evidence=(Evidence("Kernel time known to use them", told.tensor_cores, "share", SOURCE),
                  Evidence("Kernel time of operators that could", told.tensor_cores_possible, "share",
                           SOURCE),
                  Evidence(f"Difference, sum per {unit(facts)}", ms(idle), "ms", SOURCE)),
        counter_evidence=(Evidence("By names: a lower bound of their use", source=SOURCE),),
        remedy=Remedy("matmul_precision", "highest", "high") if isinstance(major, int)
        and major >= AMPERE and _float32(facts) else None,
        advice="Use autocast (bfloat16; float16 before Ampere), and sizes that are multiples of 8."),))


def _float32(facts: TraceFacts) -> bool:
    """Whether float32 beside the tensor cores takes more time than narrow types; true where none is told."""
    spent = {"fp32": 0, "fp16": 0, "bf16": 0}
    for kind, ns in zip(facts.work.dtype, facts.work.time.tolist(), strict=True):
        if kind in spent:
            spent[kind] += ns
    return 2 * spent["fp32"] >= sum(spent.values())
