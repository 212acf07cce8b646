"""Sentences of a diagnosis: the headline, and what a reader must know beside the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.analysis.facts import EARLIER, Facts
from profiler.rules.base import plural
from profiler.rules.troubles import troubles
from profiler.rules.words import failure
from profiler.units import format_count, format_ms, format_time, ms_decimals

if TYPE_CHECKING:
    from profiler.run.reader import Run

APART = 0.05  # mean and median tell different stories


def headline(facts: Facts, verdict: str) -> str:
    """One sentence with milliseconds per step; a share is never alone."""
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None:
        return facts.lacks or "no steady step"

    def ms(ns: float) -> str:
        return format_ms(ns, ms_decimals(summary.step_ns))

    step = ms(summary.step_ns)
    if verdict == "input_bound":
        text = f"{ms(summary.stages['data'])} of {step} per step wait for data"
        hidden = facts.on_device and shares.measured and shares.input < 0.95 * summary.stages["data"]
        return f"{text}, {ms(shares.input)} of it exposed" if hidden else text
    if verdict == "transfer_bound":
        return f"{ms(shares.transfer)} of {step} per step copy the batch to the device"
    if verdict == "host_bound":
        what = "the device waits for the host" if facts.on_device else "the loop works outside the stages"
        return f"{ms(shares.host)} of {step} per step {what}"
    if verdict == "communication_bound":
        return f"{ms(shares.communication)} of {step} per step wait for other ranks"
    if verdict == "compute_bound":
        return f"{ms(shares.compute)} of {step} per step compute"
    return f"{step} per step; what holds it back cannot be told"


def notes(run: Run, facts: Facts) -> tuple[str, ...]:
    """In order of weight."""
    found: list[str] = []
    summary, steady = facts.summary, facts.steady
    if run.state == "partial":
        how = failure(run.meta.get("exit"))
        found.append(f"The command {how}: the figures are of the steps before" if how else
                     "The recording ended early: the figures are of what was kept")
    if run.lacks is not None:
        found.append(run.lacks)
    if steady.kind == "evaluation" and summary is not None and not facts.lacks:
        found.append("No step trains: the figures are of inference")
    events = run.events()
    found += troubles(events)
    found += [event.text[:1].upper() + event.text[1:] for event in events if event.kind == "latency"]
    if summary is not None:
        spread = summary.spread
        if summary.steady < 10:
            found.append(f"Only {plural(summary.steady, 'steady step')}: the range instead of percentiles")
        if not steady.settled and not facts.lacks:
            found.append("The step time had not settled by the end; the second half of the run is counted")
        if abs(spread.mean - spread.median) > APART * spread.median:
            found.append(f"Mean and median differ: {format_ms(spread.mean)} and {format_ms(spread.median)} "
                         "per step; throughput follows the mean")
        if summary.stalls.any():
            found.append(f"{plural(int(summary.stalls.sum()), 'stalled step')} "
                         f"({format_time(summary.stall_ns)} in all) not in the stage means")
    if earlier := steady.left_out.get(EARLIER):
        found.append(f"These are very many steps: the newest {format_count(len(facts.steps))} are looked at, "
                     f"{format_count(earlier)} before them are not. Select a time to look at others")
    if steady.left_out:
        parts = [f"{format_count(count)} {reason}" for reason, count in steady.left_out.items()]
        found.append("Left out of the steady steps: " + ", ".join(parts))
    if facts.on_device and facts.estimate is not None and not facts.estimate.measured:
        found.append("No device times: how much of a wait the device's own work hides is not known")
    found += _losses(run, facts)
    return tuple(found)


def _losses(run: Run, facts: Facts) -> list[str]:
    found = []
    if facts.process is not None:
        for track in run.find("recorder.dropped", process=facts.process.id):
            if (latest := run.latest(track.id)) and latest[1]:
                found.append(f"{format_count(latest[1])} records of the probe were dropped")
    gpu = run.meta.get("gpu")
    if isinstance(gpu, dict) and gpu.get("state") == "absent" and gpu.get("reason"):
        found.append(f"No GPU was watched: {gpu['reason']}")
    return found
