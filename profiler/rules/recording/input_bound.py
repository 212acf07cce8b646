"""The loop waits for data: why, and what another number of loader workers would give."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.loader import LoaderModel, loader_model
from profiler.analysis.summary import StepSummary
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms, plural
from profiler.rules.decision import GAIN
from profiler.rules.recording.input_cause import InputCause, array_bytes, cause_of_wait, handed_over

NAME = "input_bound"
TITLE = "Data wait"
BUSY = 0.2  # share of the machine's cores that others use, worth telling


def check(facts: Facts) -> Outcome:
    """Lacks steady steps; ruled out when the step without its exposed wait is less than 5 % shorter."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if shares.gain("input") < GAIN:
        return Outcome(ruled_out=f"{ms(shares.input):.1f} of {ms(summary.step_ns):.1f} ms per step")
    model = model_of(facts)
    best = model.best() if model else None
    remedy = prediction = None
    if model and best is not None:
        low, middle, high = model.speedup(best)
        if middle >= GAIN and model.harmless(best):
            remedy = Remedy("num_workers", facts.workers, best)
            prediction = Prediction("no_input_wait", middle, low, high)
    why = cause_of_wait(facts, model)
    title = f"Data wait: workers {facts.workers} \u2192 {best}" if remedy else "The loop waits for data"
    title += f" ({why.word})" if why.word else ""
    severity = "error" if shares.share("input") >= 0.15 else "warning"
    return Outcome((Finding(
        NAME, title, severity, ms(shares.input), evidence=_evidence(facts, summary) + why.evidence,
        counter_evidence=_against(facts, summary, model, remedy is not None), remedy=remedy,
        advice="" if remedy else _advice(facts, model, why), prediction=prediction,
        site=facts.site("loader") or facts.loader.get("site")),))


def model_of(facts: Facts) -> LoaderModel | None:
    """The loader's queue; None without a loader of torch's, or without its CPU time."""
    summary = facts.summary
    if summary is None or facts.workers is None or facts.estimate is None:
        return None
    live, wait = facts.live, summary.stages["data"]
    return loader_model(
        step=summary.step_ns, rest=summary.step_ns - facts.estimate.input, wait=wait,
        wait_crowded=live.get("loop.waiting", 0.0) * summary.step_ns * _share_in_wait(summary),
        workers=facts.workers, wait_cpu=summary.data_cpu, workers_cores=live.get("target.workers_cpu"),
        target_cores=live.get("target.cpu"), thread_cpu=summary.thread_cpu, cores=facts.cores,
        others=facts.others or 0.0, alone=facts.loader_alone, handed=handed_over(facts),
        array_bytes=array_bytes(facts),
        workers_waiting=max(0.0, live.get("target.waiting", 0.0) - live.get("loop.waiting", 0.0)))


def _share_in_wait(summary: StepSummary) -> float:
    """Of the loop's thread's work what lies in the wait: as much of its time without a core does."""
    return min(1.0, (summary.data_cpu or 0.0) / summary.thread_cpu) if summary.thread_cpu else 0.0


def _evidence(facts: Facts, summary: StepSummary) -> tuple[Evidence, ...]:
    wait = ms(summary.stages["data"])
    found = [Evidence(f"Loader wait, mean of {plural(summary.steady, 'steady step')}", wait, "ms")]
    if facts.on_device and summary.exposed is not None:
        found.append(Evidence("Of it not hidden behind the device's work", ms(summary.exposed), "ms",
                              "probe, CUDA events"))
    if facts.workers is not None:
        found.append(Evidence("Loader workers", facts.workers, "count"))
    if facts.workers == 0 and summary.data_cpu is not None:
        found.append(Evidence("CPU time of the loop's thread in the wait", ms(summary.data_cpu), "ms"))
    for metric, text, unit in (("gpu.util", "GPU utilization", "share"),
                               ("target.cpu", f"Busy CPU cores of {facts.cores}", "cores"),
                               ("target.workers_cpu", "Busy cores of loader workers", "cores")):
        if metric in facts.live and not (metric == "target.workers_cpu" and not facts.workers):
            found.append(Evidence(text, facts.live[metric], unit,
                                  "NVML" if metric.startswith("gpu") else "host"))
    return tuple(found)


def _against(facts: Facts, summary: StepSummary, model: LoaderModel | None,
             predicted: bool) -> tuple[Evidence, ...]:
    found = []
    if facts.on_device and summary.exposed is None:
        found.append(Evidence("Device lag was not measured: a part of the wait may cost nothing"))
    elif facts.on_device and (hidden := summary.stages["data"] - (summary.exposed or 0.0)) > 0:
        found.append(Evidence("Hidden behind work that the device still had", ms(hidden), "ms",
                              "probe, CUDA events"))
    if model:
        load = (model.cpu + model.other_cpu) / (model.cores * model.step)
        text = f"Share of {plural(model.cores, 'core')} that a step keeps busy"
        found.append(Evidence(text, load, "share", "host"))
    if facts.others is not None and facts.others > BUSY:
        text = "Cores that other programs keep busy; more workers feel them more"
        found.append(Evidence(text, facts.others, "share", "host"))
    for workers, ns in facts.loader_alone.items():
        text = f"No step is shorter than a batch of the loader alone, {plural(workers, 'worker')}"
        found.append(Evidence(text, ms(ns), "ms", "stepscope ceilings"))
    if predicted and not facts.loader_alone and not (model and model.handed):
        text = "What storage can deliver is not known; it may cap the gain"
        found.append(Evidence(text, source="not measured"))
    return tuple(found)


def _advice(facts: Facts, model: LoaderModel | None, why: InputCause) -> str:
    if facts.workers is None:
        return "Make batches in a torch DataLoader with workers, beside the loop."
    if model is None:
        return "The loader's CPU time was not measured, so that no number of workers can be named."
    if model.handed:
        return f"{why.advice}."
    who = f"{plural(facts.workers, 'worker')} on {plural(model.cores, 'core')}"
    if model.computes and facts.workers > model.cores:
        return (f"{who} share them: {model.cores} would do as much, with less memory. "
                f"A cheaper batch is what is left. {why.advice}.")
    if not model.candidates():
        are = "is" if facts.workers == 1 else "are"
        return f"{who} {are} as many as help: make a batch cheaper. {why.advice}."
    if (best := model.best()) is not None and model.speedup(best)[1] < GAIN:
        return f"More workers would give less than {100 * (GAIN - 1):.0f} %. {why.advice}."
    return f"More workers would not help, the cores are busy: make a batch cheaper. {why.advice}."
