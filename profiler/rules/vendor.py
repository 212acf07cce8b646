"""What a rule says in the words of the GPU's vendor: rules are written in NVIDIA's."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from profiler.model import Device
from profiler.rules.base import Evidence, Finding, Outcome

AMD = (("NVML", "AMD SMI"), ("CUDA events", "HIP events"), ("NVLink", "XGMI"), ("nvidia-smi", "amd-smi"),
       ("SM clock", "shader clock"))  # fmt: skip


def in_words_of(device: Device | None, outcome: Outcome) -> Outcome:
    """The outcome with the names of an AMD GPU's library and parts; unchanged for any other device."""
    if device is None or device.properties.get("vendor") != "AMD":
        return outcome
    found: Outcome = _said(outcome)
    return found


def _said(value: Any) -> Any:
    """Texts of outcomes, findings and evidence; a remedy keeps the name of its setting."""
    if isinstance(value, str):
        for ours, theirs in AMD:
            value = value.replace(ours, theirs)
        return value
    if isinstance(value, tuple):
        return tuple(_said(item) for item in value)
    if isinstance(value, (Outcome, Finding, Evidence)):
        return replace(value, **{field.name: _said(getattr(value, field.name)) for field in fields(value)
                                 if field.name not in ("rule", "severity", "site")})
    return value
