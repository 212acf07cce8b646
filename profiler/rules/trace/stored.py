"""What traces inside a run say, as kept in the run: one analysis for command line, report and window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from profiler.rules.base import Finding, order
from profiler.rules.decision import Decision
from profiler.version import code_digest

if TYPE_CHECKING:
    from profiler.run.reader import Run

KIND = "trace"  # of the result
_CODE = ("analysis", "importers", "replay", "rules", "trace")  # what the figures of a result come from
NOT_ANALYSED = "this version has not analysed the run's traces yet: stepscope diagnose RUN does so"
ON_CPU = ("launch_bound",)  # rules that tell of a CPU run what its stages cannot
# What is put into the diagnosis of a recording, beside its own figures.
_ADDED = ("window_ms", "partition_ms", "transfer_by_kind_ms", "launching_ms", "gpu_data_incomplete",
          "what_if", "replay_error", "replay", "kernels", "operators", "modules", "communication", "waiting",
          "launches", "queue", "copies", "devices", "gaps", "critical_path", "memory", "efficiency",
          "roofline", "traces")


def engine() -> str:
    """What made a result: a digest of the code behind its figures.

    A result of other code is worked out again when it is asked for. No test can see that
    figures have come to mean something else, and a number that must be raised by hand is
    forgotten; that a changed comment costs one more analysis is the price.
    """
    return code_digest(*(f"profiler/{folder}" for folder in _CODE))


def result(told: Mapping[str, Any], attachments: list[int]) -> dict[str, Any]:
    """What to store: a diagnosis of traces in its JSON form, and which attachments it is of."""
    return {**told, "engine": engine(), "attachments": attachments}


def attachments(run: Run) -> list[int]:
    """Ids of the traces that a run holds."""
    return [item.id for item in run.attachments() if item.kind == "kineto"]


def stored(run: Run) -> dict[str, Any] | None:
    """The newest analysis of all the run's traces by this version; None when there is none to use."""
    own = attachments(run)
    if not own:
        return None
    usable = [value for value in run.results(KIND)
              if value.get("engine") == engine() and value.get("attachments") == own and _whole(value)]
    return usable[-1] if usable else None


def _whole(value: Mapping[str, Any]) -> bool:
    """Whether a result has the form that it was stored in; a run may come from anybody."""
    try:
        return bool(findings(value) is not None and decision(value).verdict)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def speaks(told: Mapping[str, Any]) -> bool:
    """Whether the verdict is the trace's: it has an accelerator, and its data are complete."""
    return told["partition_ms"] is not None and told["device"]["kind"] != "cpu"


def decision(told: Mapping[str, Any]) -> Decision:
    """The verdict of a stored analysis."""
    return Decision(str(told["verdict"]), tuple(map(str, told["also"])), str(told["confidence"]),
                    str(told["reason"]), float(told["gain"]))


def findings(told: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The findings of a stored analysis."""
    return tuple(Finding.from_json(item) for item in told["findings"])


def joined(recorded: tuple[Finding, ...], traced: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings of stages and of a trace. One cause is one finding: that with a remedy that can be scored,
    else the trace's; with the evidence of both."""
    found = {f.rule: f for f in traced}
    for finding in recorded:
        other = found.get(finding.rule)
        found[finding.rule] = finding if other is None else finding.beside(other)
    return tuple(sorted(found.values(), key=order))


def beside(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a trace adds to the figures of a recording."""
    return {key: told.get(key) for key in _ADDED} | {"traced_steps": told["steps"],
                                                     "traced_step_ms": told["step_ms"]}
