"""The GPU or its driver reported errors during the run: XIDs, memory errors, failed links, a lost GPU."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.facts import Facts
from profiler.model import Event
from profiler.rules.base import Evidence, Finding, Outcome, plural

NAME = "device_errors"
TITLE = "Errors of the GPU"
SHOWN = 8
# XIDs that a program's own fault makes: a kernel that fails or reads memory that is not its own.
OF_PROGRAMS = (13, 31, 43, 45)


def check(facts: Facts) -> Outcome:
    """Corrected memory errors alone are no finding: that is what the correction is for."""
    if facts.card is None and not facts.health:
        return Outcome(lacks=facts.no_gpu)
    of_loop = facts.card is not None  # else errors of any GPU: they may be why there was no step
    told = [event for event in facts.health if event.severity != "info"]
    corrected = [event for event in facts.health if event.severity == "info" and event.kind == "ecc"]
    if not told:
        text = f"only memory errors that were corrected, told {plural(len(corrected), 'time')}"
        return Outcome(ruled_out=text if corrected else "none was reported")
    worst = max(told, key=lambda event: (event.severity == "error", event.data.get("xid") not in OF_PROGRAMS))
    rows = tuple(Evidence(text, times, "times", "NVML") for text, times in _counted(told, of_loop)[:SHOWN])
    title = f"The GPU reported errors: {_short(worst)}" if of_loop else f"Errors of a GPU: {worst.text}"
    return Outcome((Finding(
        NAME, title, worst.severity, evidence=rows,
        counter_evidence=(Evidence("Errors of memory that were corrected are not among them", source="NVML"),)
        if corrected else (), advice=_advice(told)),))


def _short(event: Event) -> str:
    """Without the device that stands before it."""
    return event.text.partition("): ")[2] or event.text


def _counted(told: Sequence[Event], of_loop: bool) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for event in told:
        text = _short(event) if of_loop else event.text
        counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])


def _advice(told: Sequence[Event]) -> str:
    if all(event.data.get("xid") in OF_PROGRAMS for event in told):
        return ("These come from a program's own kernels: CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer tell "
                "which one.")
    return ("Results and times of this run are doubtful. The kernel log (dmesg) and nvidia-smi -q tell more; "
            "reset the GPU, and have it looked at when it happens again.")
