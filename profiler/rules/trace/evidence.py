"""What the rules of a trace have in common: evidence, predictions, lines of the user's code."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.trace.code.grouping import summed
from profiler.analysis.trace.code.owners import above, nearest
from profiler.analysis.trace.intervals import covered, intersect, subtract, union
from profiler.analysis.trace.joined import take
from profiler.rules.base import Evidence, Outcome, Prediction, ms
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import NONE, Ints, Kind

SOURCE = "trace"
WORTH = 0.03  # share of the step, or gain, from which a cost is a finding
GRAVE = 0.15  # from which it is a major one
_TITLES = {
    "compute": "Kernels run", "communication_exposed": "Communication that nothing hides",
    "transfer_exposed": "Copies that nothing hides", "queued": "Submitted, the device has not begun",
    "input_wait": "Idle while the loop waits for its batch",
    "allocator": "Idle during memory calls (cudaMalloc and kin)",
    "transfer_host": "Idle while the host stages a copy", "sync": "Idle inside a blocking synchronisation",
}
# A frame of Python as Kineto writes it, "train.py(57): step", or in a call stack, "train.py(57): step".
_FRAME = re.compile(r"^(?P<file>[^<].*\.py)\((?P<line>\d+)\): ")
# Kineto writes paths from where Python finds them: a package begins with its name, a user's file seldom does.
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python\d|(^|/)torch/|^(torch\w*|transformers|accelerate|diffusers|peft|"
    r"trl|datasets|evaluate|tokenizers|safetensors|huggingface_hub|timm|lightning\w*|pytorch_lightning|ignite|"
    r"fastai|composer|deepspeed|megatron|apex|xformers|flash_attn|triton|vllm|bitsandbytes|detectron2|mmcv|"
    r"mmengine|monai|kornia|numpy|scipy|pandas|PIL|cv2|sklearn|tqdm|wandb|hydra|multiprocessing|concurrent|"
    r"asyncio|importlib|logging|json|unittest|_pytest|pytest)/|"
    r"^(threading|queue|runpy|contextlib|functools|selectors|socket|subprocess|pickle|copy|tempfile|"
    r"weakref|abc|typing|dataclasses|warnings|inspect)\.py")


def classes(facts: TraceFacts, *names: str) -> tuple[Evidence, ...]:
    """The classes of the partition with these names, in ms a step; those that are absent are left out."""
    found = []
    for name in names:
        if ns := facts.shares.classes.get(name, 0.0):
            found.append(Evidence(f"{_TITLES.get(name, name)}, mean per {unit(facts)}", ms(ns), "ms", SOURCE))
    return tuple(found)


def unit(facts: TraceFacts) -> str:
    """What figures are means over."""
    return "step" if facts.steps.per_step else "trace"


def gain(facts: TraceFacts, *scenarios: str) -> float:
    """Predicted speedup, the best of the scenarios; 1 where none is predicted."""
    found = facts.scenario(*scenarios)
    return found.speedup if found else 1.0


def at_most(facts: TraceFacts, *scenarios: str) -> Prediction | None:
    """The scenario's own gain, for a remedy without a model; None where nothing is predicted."""
    found = facts.scenario(*scenarios)
    if found is None or found.speedup <= 1.0:
        return None
    return Prediction(found.name, found.speedup, 1.0, max(found.high, found.speedup), at_most=True)


def small(facts: TraceFacts, word: str, *scenarios: str) -> Outcome | None:
    """Why a cause is no finding: nothing can be claimed, or it costs too little; None when it is one."""
    if facts.lacks:
        return Outcome(lacks=facts.lacks)
    cost, window = facts.cost(word), facts.shares.window
    if cost < WORTH * window and gain(facts, *scenarios) < 1 + WORTH:
        where = f"{ms(cost):.1f} of {ms(window):.1f} ms per {unit(facts)}"
        told = facts.scenario(*scenarios)
        return Outcome(ruled_out=where + (f", {told.speedup:.2f} times as fast without it" if told else ""))
    return None


def severity(facts: TraceFacts, word: str, *scenarios: str) -> str:
    """Major where the cause costs, or its removal gives, more than 15 %."""
    grave = facts.cost(word) >= GRAVE * facts.shares.window or gain(facts, *scenarios) >= 1 + GRAVE
    return "error" if grave else "warning"


def doubts(facts: TraceFacts, *scenarios: str) -> tuple[Evidence, ...]:
    """What speaks against a prediction, or why there is none."""
    told = facts.scenario(*scenarios)
    if told is None:
        return (Evidence(f"No prediction: {facts.replay.withheld}", source="replay"),) \
            if facts.replay.withheld else ()
    found = [Evidence(told.note, source="replay")] if told.note else []
    if facts.scale_to_ns is None:
        found.append(Evidence("Host costs include the profiler's own", source="replay"))
    return tuple(found)


def idle(facts: TraceFacts, *names: str) -> Ints:
    """When the device idles in the counted windows and these classes are told for it; "other" for all
    `other:<name>`. Of the CPU as the device: when it is outside operators and the loader. int64[n, 2], ns."""
    part = facts.partition
    windows = union(part.windows[part.counted, 0], part.windows[part.counted, 1])
    if part.gaps is None:
        host = facts.trace.host
        works = (host.kind == Kind.OPERATOR) | facts.joined.fetch
        return subtract(windows, union(host.start[works], host.end[works]))
    wanted = [k for k, text in enumerate(part.gaps.texts) if text.split(":")[0] in names]
    return intersect(part.gaps.pieces[np.isin(part.gaps.piece_code, wanted)], windows)


def line_at(facts: TraceFacts, times: Ints) -> str | None:
    """"file:line" of the user's function in which the loop's thread is for most of these times.

    `times`: a set, int64[n, 2], ns. None where the trace has no rows of Python functions.
    """
    host, names = facts.trace.host, facts.trace.names
    usable = np.array([own_line(name) != "" for name in names] or [False])
    frame = (host.kind == Kind.PYTHON) & (host.thread == facts.steps.thread) & usable[host.name]
    rows = np.flatnonzero(frame)
    if not len(rows):
        return None
    inside = np.zeros(len(host), np.int64)
    inside[rows] = covered(times, host.start[rows], host.end[rows])
    outer = above(facts.joined.parent, frame)[rows]
    own = inside.copy()
    np.subtract.at(own, outer[outer >= 0], inside[rows[outer >= 0]])
    spent: dict[str, int] = {}
    for name, ns in zip(host.name[rows].tolist(), own[rows].tolist(), strict=True):
        spent[own_line(names[name])] = spent.get(own_line(names[name]), 0) + ns
    most = max(spent, key=lambda key: spent[key])
    return most if spent[most] > 0 else None


def site(facts: TraceFacts, rows: Ints) -> str | None:
    """"file:line" of the user's code in which these host rows take most time; None where no stack tells."""
    host, texts, parent = facts.trace.host, facts.trace.names, facts.joined.parent
    usable = np.array([own_line(name) != "" for name in texts] or [False])
    frames = nearest(parent, (host.kind == Kind.PYTHON) & usable[host.name])[rows]
    stacks = np.where(frames >= 0, NONE, nearest(parent, host.stack >= 0)[rows])
    spent: dict[str, int] = {}
    for codes in (take(host.name, frames), take(host.stack, stacks)):
        known = codes >= 0
        each = summed(codes[known], (host.end[rows] - host.start[rows])[known], len(texts))
        for code in np.unique(codes[known]).tolist():
            where = next((line for frame in texts[code].split(";") if (line := own_line(frame))), "")
            if where:
                spent[where] = spent.get(where, 0) + int(each[code])
    return max(spent, key=lambda key: spent[key], default=None)


def own_line(frame: str) -> str:
    """"train.py:57" of "train.py(57): step"; "" of a library's frame or anything else."""
    frame = frame.strip()
    found = _FRAME.match(frame)
    return f"{found['file']}:{found['line']}" if found and not _LIBRARY.search(frame) else ""
