"""One step in lanes: the stages of the median step, the device beside it, the partition of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.diagnose.data import Lane, Span, StepData
from profiler.analysis.steps import Steps
from profiler.metrics import stage_title
from profiler.model import STAGES
from profiler.rules.trace import stored
from profiler.rules.verdict import Diagnosis
from profiler.rules.words import CLASS_STAGES, class_title
from profiler.run.reader import Run
from profiler.units import format_ms, ms_decimals

SHORT = {"data": "data wait", "forward": "fwd", "backward": "bwd", "optimizer": "opt"}
APART = 0.05  # mean and median tell different stories


def query(run: Run, found: Diagnosis, told: Mapping[str, Any]) -> StepData:
    """Lanes of what was measured; none of a run without steps and without a trace."""
    picked = found.facts.steps.select(found.facts.steady.mask)
    lanes: list[Lane] = []
    idle, end, note = None, 0.0, ""
    if found.facts.summary is not None and len(picked):
        k = _median(picked)
        end = float(picked.wall[k]) / 1e6
        host = _host(picked, k)
        if len(host.spans) > 1 or not found.imported:  # the stages of many traces are not known
            lanes.append(host)
        device, idle = _device(picked, k)
        if device is not None:
            lanes.append(device)
        note = _note(picked, k, told)
    part = told["partition_ms"]
    if part and sum(part.values()) > 0:
        lane = _partition(part, told)
        lanes.append(lane)
        if len(lanes) == 1:
            end, note = lane.spans[-1].t1, ""
    return StepData(tuple(lanes), end, note, idle)


def range_of(run: Run, found: Diagnosis) -> tuple[int, int] | None:
    """Where on the time axis a finding is seen: the median step, of those in a trace where there are such."""
    steps = found.facts.steps
    traced = [item.properties.get("steps") for item in run.attachments() if item.kind == "kineto"]
    spans = [pair for pair in traced if isinstance(pair, list) and len(pair) == 2
             and all(isinstance(n, int) for n in pair)]
    inside = np.zeros(len(steps), bool)
    if found.trace is not None and stored.speaks(found.trace):
        for first, last in spans:
            inside |= (steps.index >= first) & (steps.index <= last)
    picked = steps.select(inside if inside.any() else found.facts.steady.mask)
    if not len(picked):
        return None
    k = _median(picked)
    return int(picked.t0_ns[k]), int(picked.t1_ns[k])


def _median(steps: Steps) -> int:
    """The step in the middle of all by length."""
    order = np.argsort(steps.wall, kind="stable")
    return int(order[(len(order) - 1) // 2])


def _note(steps: Steps, k: int, told: Mapping[str, Any]) -> str:
    wall, mean = float(steps.wall[k]), float(told["step_ms"]["usual"]) * 1e6
    decimals = ms_decimals(wall)
    text = f"step {int(steps.index[k]) + 1}, the median one: {format_ms(wall, decimals)}"
    return f"{text} (mean {format_ms(mean, decimals)})" if abs(mean - wall) > APART * wall else text


def _host(steps: Steps, k: int) -> Lane:
    """Stages in the order of the loop. What lies between them is put last, as other."""
    decimals, at, spans = ms_decimals(float(steps.wall[k])), 0.0, []
    for stage in STAGES:
        took = float(steps.stages[stage][k]) / 1e6
        if took > 0:
            text = f"{SHORT.get(stage, stage_title(stage))} {format_ms(took * 1e6, decimals)}"
            spans.append(Span(stage, at, at + took, text))
            at += took
    return Lane("Loop thread", tuple(spans), "host time by stage")


def _device(steps: Steps, k: int) -> tuple[Lane | None, tuple[float, float, str] | None]:
    """The device between the events at the stages' ends; and where it has nothing to do before the batch."""
    decimals, at, done, spans = ms_decimals(float(steps.wall[k])), 0.0, 0.0, []
    waited = float(steps.stages["data"][k]) / 1e6
    behind = _value(steps.lag, "data", k)
    if behind:
        text = f"previous step, {format_ms(behind * 1e6, decimals)} behind"
        spans.append(Span("", 0.0, behind, text))
        done = behind
    for stage in STAGES:
        took, lag = _value(steps.device, stage, k), _value(steps.lag, stage, k)
        if took and stage != "data":
            begin = max(done, at + (lag or 0.0))
            text = f"{SHORT.get(stage, stage_title(stage))} {format_ms(took * 1e6, decimals)}"
            spans.append(Span(stage, begin, begin + took, text))
            done = begin + took
        at += float(steps.stages[stage][k]) / 1e6
    if not any(span.stage for span in spans):
        return None, None
    exposed = waited - (behind or 0.0)
    idle = None
    if behind is not None and exposed > 0:
        idle = behind, waited, f"device idle, {format_ms(exposed * 1e6, decimals)} of the wait exposed"
    return Lane("Device", tuple(spans), "by events"), idle


def _value(of: Mapping[str, Any], stage: str, k: int) -> float | None:
    """ms; None where it was not measured."""
    values = of.get(stage)
    if values is None or not np.isfinite(values[k]):
        return None
    return max(0.0, float(values[k])) / 1e6


def _partition(part: Mapping[str, float], told: Mapping[str, Any]) -> Lane:
    decimals, at, spans = ms_decimals(sum(part.values()) * 1e6), 0.0, []
    for name, took in sorted(part.items(), key=lambda item: -item[1]):
        if took > 0:
            text = f"{class_title(name)} {format_ms(took * 1e6, decimals)}"
            spans.append(Span(CLASS_STAGES.get(name, "other"), at, at + took, text))
            at += took
    steps = told.get("traced_steps") or told["steps"]
    return Lane("Partition", tuple(spans), "mean traced step" if steps["count"] else "the whole trace")
