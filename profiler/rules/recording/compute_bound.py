"""The device computes nearly all the time: that is what a training should do. What limits it then?"""

from __future__ import annotations

from collections.abc import Mapping

from profiler.analysis.estimate import WORK
from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.recording.tensor_cores import main_type

NAME = "compute_bound"
TITLE = "Compute"
FULL = 0.85
BUSY = 0.9  # utilization from which power says something of how much of the GPU works
FAINT = 0.4  # of the power limit, below which a busy GPU does little
BANDWIDTH = 0.6  # share of the time in which memory was read or written: NVML's memory utilization
# By the GPU's own counters, where it has GPM. No kernel reaches all of them: bounds are generous.
FULL_DRAM, FEW_SMS, FEW_WARPS, NO_TENSOR = 0.6, 0.6, 0.1, 0.05


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
                               ("gpu.clock_sm", "SM clock", "MHz"),
                               ("gpu.mem_util", "Time in which memory was read or written", "share"),
                               ("gpu.sm_active", "SM activity", "share"),
                               ("gpu.sm_occupancy", "SM occupancy", "share"),
                               ("gpu.tensor_active", "Tensor activity", "share"),
                               ("gpu.dram_active", "DRAM bandwidth, of the peak", "share")):
        if metric in facts.live:
            evidence.append(Evidence(text, facts.live[metric], unit, "NVML"))
    what, advice = "The device" if facts.on_device else "The CPU", ""
    if facts.on_device:
        evidence += _numerics(facts)
        advice = _limit(facts)
    return Outcome((Finding(
        NAME, f"{what} computes {100 * share:.0f} % of the step", "info", ms(shares.compute),
        evidence=tuple(evidence),
        counter_evidence=(Evidence("Utilization tells that kernels run, not how much of the GPU they use",
                                   source="NVML"),) if facts.on_device else (),
        advice=advice or "What is left is the arithmetic: precision, compilation, a larger batch."),))


def _numerics(facts: Facts) -> list[Evidence]:
    told = facts.readings.numerics
    found = []
    if weights := main_type(told):
        found.append(Evidence("Type of most weights", weights[0]))
        found.append(Evidence("Autocast at the call of the model", str(told.get("autocast") or "off")))
    limit = power_share(facts)
    if limit is not None:
        found.append(Evidence("Power, of its limit", limit, "share", "NVML"))
    return found


def power_share(facts: Facts) -> float | None:
    """Mean power over the enforced limit; None where either is not known."""
    limit = facts.device.properties.get("power_limit_w") if facts.device else None
    power = facts.live.get("gpu.power")
    return power / limit if power is not None and isinstance(limit, int | float) and limit > 0 else None


def _limit(facts: Facts) -> str:
    """What limits the kernels, where live signals hint at it; "" where they do not."""
    power, busy = power_share(facts), facts.live.get("gpu.util", 0.0) >= BUSY
    if "gpu.sm_active" in facts.live:
        return _counted(facts.live)
    if facts.live.get("gpu.mem_util", 0.0) >= BANDWIDTH:
        return ("Memory is busy most of the time, so that its bandwidth may be the limit: fuse operators "
                "(torch.compile), a smaller type (bfloat16), channels_last for convolutions.")
    if busy and power is not None and power < FAINT:
        return (f"Busy all the time, it draws {100 * power:.0f} % of its power limit: its kernels may fill "
                "little of it. A larger batch, or torch.compile; a trace tells which kernels.")
    return ""


def _counted(live: Mapping[str, float]) -> str:
    """The same by the GPU's own counters."""
    dram, sms = live.get("gpu.dram_active", 0.0), live["gpu.sm_active"]
    if dram >= FULL_DRAM:
        return (f"The memory's bandwidth is the limit ({100 * dram:.0f} % of its peak on average): fuse "
                "operators (torch.compile), a smaller type (bfloat16), channels_last for convolutions.")
    if sms < FEW_SMS or live.get("gpu.sm_occupancy", 1.0) < FEW_WARPS:
        return (f"Kernels run all the time and keep {100 * sms:.0f} % of the multiprocessors busy: give them "
                "more work each (a larger batch, torch.compile); a trace tells which kernels.")
    if live.get("gpu.tensor_active", 1.0) < NO_TENSOR:
        return ("The tensor cores idle: use autocast to bfloat16, or TF32 (matmul precision high), where "
                "products are what is computed.")
    return ""
