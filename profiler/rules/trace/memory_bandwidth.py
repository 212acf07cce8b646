"""Time in operators that do little arithmetic for each byte: activations, norms, losses, optimizers.

Operators that could use matrix units are left out, and so are kernels of no operator of torch's own
(graphs, compiled code). What is left is limited by the bandwidth of the device's memory, or too small to be.
"""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.device import tensor_cores
from profiler.rules.base import Evidence, Finding, Outcome, Remedy, ms
from profiler.rules.trace.evidence import SOURCE, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.settings import compiled
from profiler.trace.model import NONE, Flags

NAME = "memory_bandwidth"
TITLE = "Memory bandwidth"
WORTH = 0.3  # share of the window in such operators
SHOWN = 4  # operators


def check(facts: TraceFacts) -> Outcome:
    """Lacks operators of kernels; ruled out where such operators take less than 30 % of the step."""
    if facts.lacks or not facts.on_device:
        return Outcome(lacks=facts.lacks or "no accelerator in the trace")
    rows = _rows(facts)
    if not (facts.kernels.is_kernel & facts.activities & (facts.owners.device_operator != NONE)).any():
        return Outcome(lacks="the kernels of the steps belong to no operators")
    steps = max(len(facts.windows), 1)
    spent = int(facts.owners.device_time[rows].sum()) / steps
    window = facts.shares.window
    if spent < WORTH * window:
        return Outcome(ruled_out=f"{ms(spent):.1f} of {ms(window):.1f} ms per {unit(facts)}")
    text = f"Operators without matrix products, sum per {unit(facts)}"
    evidence = [Evidence(text, ms(spent), "ms", SOURCE)]
    evidence += [Evidence(f"Kernels of {group.key[0]}", ms(group.total_ns / steps), "ms", SOURCE)
                 for group in facts.kernels.by("operator", rows=rows)[:SHOWN]]
    remedy = None if compiled(facts) else Remedy("compile", "off", "default")
    return Outcome((Finding(
        NAME, "Most of the time goes to operators that memory limits" if spent >= 0.5 * window
        else "Much time goes to operators that memory limits", "info", evidence=tuple(evidence),
        counter_evidence=(Evidence("By operators: a trace does not tell how fast bytes were moved",
                                   source=SOURCE),),
        remedy=remedy,
        advice="Fuse them (torch.compile, fused optimizers and norms), a smaller type (bfloat16), "
               "channels_last for convolutions."),))


def _rows(facts: TraceFacts) -> Flags:
    """Kernels of the counted steps that compute, in operators that could not use matrix units."""
    owners = facts.owners
    torchs = facts.joined.host_names(lambda name: name.startswith("aten::")).astype(bool)
    row = owners.device_operator  # of compiled code and foreign operators nobody knows what they do
    known = (row != NONE) & torchs[np.maximum(row, 0)] if len(torchs) else row != row
    other = known & ~tensor_cores.could_use(owners)
    return other & facts.kernels.is_kernel & facts.activities & facts.joined.compute
