"""Every fault on a GPU against a healthy control: its verdict, its rule, and what removing it would give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from kit import Check, NoTimeError, brief

from workloads import _faults

# Runs that a GPU is busy with: the controls, before what a fault's own control asks for.
HEALTHY: dict[str, dict[str, Any]] = {
    "image_classification": {
        # 25 steps an epoch: the profiler's window, from step 30 on, holds no start of one
        "model": "resnet50", "images": 1600, "batch_size": 64, "precision": "bfloat16", "channels_last": True,
        "workers": 12, "persistent_workers": True, "pin_memory": True, "steps": 90},
    "language_model": {
        "model": "medium", "batch_size": 32, "context": 512, "precision": "bfloat16", "workers": 2,
        "persistent_workers": True, "pin_memory": True, "steps": 90},
}
# A rehearsal on the CPU: the same words with next to no work.
TINY: dict[str, Any] = {"size": "smallest", "steps": 40}
# Settings of a fault's control that make it small enough for a CPU; on a GPU they would starve it.
OF_THE_CPU = {"model", "batch_size", "context", "images", "image_size", "steps", "threads", "workers",
              "persistent_workers", "slow_storage"}
# Where a fault acts on a GPU, when that is not its first workload, and the control's further settings.
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "epoch_start_stall": ("image_classification", {}),
    "few_workers": ("language_model", {"workers": 12, "slow_storage": 1.0}),
    "pageable_copies": ("image_classification", {}),
    "variable_shapes": ("image_classification", {}),
}
STRENGTHS = {"gc_pauses": 5.0}  # a pause shorter than the device's lag costs nothing
# Their verdict is that of the steps between the stalls: a window that holds one would tell another.
WITHOUT_TRACE = ("stalls", "epoch_start")
TRACED_STEPS = 4


def check_faults(check: Check) -> None:
    """One recording of each fault, and one of each control."""
    controls: dict[str, dict[str, Any]] = {}
    modules = [_faults.fault(name) for name in _faults.names()]
    for fault in sorted(modules, key=lambda fault: fault.NEEDS != "cuda"):  # first what a CPU cannot show
        if fault.NEEDS == "ranks" or (check.rehearsal and fault.NEEDS == "cuda"):
            what = "two GPUs" if fault.NEEDS == "ranks" else "a GPU"
            check.told(f"fault {fault.NAME}", f"needs {what}: not tested", True)
            continue
        try:
            check_fault(check, fault, controls)
        except NoTimeError:
            raise
        except Exception as error:
            check.told(f"fault {fault.NAME}", f"{type(error).__name__}: {error}"[:300], False, False)


def check_fault(check: Check, fault: ModuleType, controls: dict[str, dict[str, Any]]) -> None:
    """Tells verdict and rule of the fault, and that its control has another verdict."""
    workload, control = control_of(fault, check.rehearsal)
    traced = fault.RULE not in WITHOUT_TRACE
    words = ("--trace-steps", str(TRACED_STEPS)) if traced else ()
    key = json.dumps([workload, control, traced], sort_keys=True)
    if key not in controls:
        number = len(controls) + 1
        controls[key] = check.diagnosis(check.workload(f"control_{number}", workload, control, *words))
        check.figures[f"control {number}"] = {"workload": workload, "settings": control,
                                              "diagnosis": brief(controls[key])}
    settings = faulty(fault, control, check.rehearsal)
    told = check.diagnosis(check.workload(f"fault_{fault.NAME}", workload, settings, *words))
    rules = [finding["rule"] for finding in told["findings"]]
    slower, predicted = _slower(told, controls[key]), _predicted(told, fault.RULE)
    check.figures[f"fault {fault.NAME}"] = {
        "workload": workload, "settings": settings, "slower": slower, "diagnosis": brief(told),
        "control": list(controls).index(key) + 1}
    check.told(f"fault {fault.NAME}: verdict", f"{', '.join((told['verdict'], *told['also']))}; "
               f"control {controls[key]['verdict']}", told["verdict"] == fault.VERDICT)
    check.told(f"fault {fault.NAME}: rule", f"{', '.join(rules) or 'no finding'}; wanted {fault.RULE}",
               fault.RULE in rules)
    check.told(f"fault {fault.NAME}: costs", f"{slower:.2f} x the control's step; without it faster by "
               f"{predicted}, it predicts", slower > 1.0 or not traced)


def control_of(fault: ModuleType, rehearsal: bool = False) -> tuple[str, dict[str, Any]]:
    """The workload in which the fault is tested, and the settings of the run without it."""
    workload, more = PLACES.get(fault.NAME, (fault.WORKLOADS[0], {}))
    if rehearsal:
        workload = fault.WORKLOADS[0]
        return workload, {**TINY, **fault.CONTROL}
    own = {key: value for key, value in fault.CONTROL.items() if key not in OF_THE_CPU}
    return workload, {**HEALTHY[workload], **more, **own}


def faulty(fault: ModuleType, control: Mapping[str, Any], rehearsal: bool = False) -> dict[str, Any]:
    """The settings of the run with it."""
    strength = 1.0 if rehearsal else STRENGTHS.get(fault.NAME, 1.0)
    return {**control, **fault.FAULTY, fault.NAME: strength}


def _slower(told: Mapping[str, Any], control: Mapping[str, Any]) -> float:
    """Ratio of the steps' mean times over the whole loop, stalls and epoch starts included."""
    a, b = (told_["whole_run"]["wall_s"] / told_["whole_run"]["steps"] for told_ in (told, control))
    return float(a / b)


def _predicted(told: Mapping[str, Any], rule: str) -> str:
    """The gain that the diagnosis predicts for this finding."""
    for finding in told["findings"]:
        if finding["rule"] == rule and (prediction := finding["prediction"]):
            word = "at most " if prediction["at_most"] else ""
            return f"{word}{prediction['low']:.2f} to {prediction['high']:.2f}"
    return "nothing"
