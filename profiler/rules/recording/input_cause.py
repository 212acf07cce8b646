"""Why batches are late: what whoever makes them does meanwhile, and what it takes to hand them over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from profiler.analysis.facts import Facts
from profiler.analysis.loader import READY, WAITING, LoaderModel
from profiler.model import mapping
from profiler.rules.base import Evidence, ms

FEWEST = 5  # fetches that were looked at
LARGE = 1 << 20  # bytes of a batch that are worth telling
SLOW_START_NS = 1_000_000_000  # of the first batch

STORAGE = "Samples are waited for: read larger pieces, keep them nearer (local disk, memory), or cache them"
WORK = "Samples are work: smaller files, a cheaper decoder or augmentation, a cache of decoded samples"
HANDED = ("Batches are ready, handing them over is what takes time: smaller types (uint8, cast on the "
          "device), tensors instead of arrays, or no workers where samples lie in memory")


@dataclass(frozen=True)
class InputCause:
    """`word` for titles, "" where the cause is not known. `advice` is a sentence without its full stop."""

    word: str
    advice: str
    evidence: tuple[Evidence, ...] = ()


def cause_of_wait(facts: Facts, model: LoaderModel | None) -> InputCause:
    """From the CPU time of whoever makes batches, and from fetches whose batch was ready.

    A share of work from 0.7 on is called decoding, up to 0.3 storage: workers that sleep 3 ms for a sample
    show 0.06 to 0.11, those that compute 1.0, also beside other programs, as time without a core counts
    as work.
    """
    if model is None:
        return InputCause("", "", _batches(facts))
    if model.handed:
        return InputCause("hand-over", HANDED, _handing(facts) + _batches(facts))
    who = "Of its time a worker" if facts.workers else "Of the wait the loop's thread"
    share = Evidence(f"{who} works, or has no core", model.work, "share",
                     "host" if facts.workers else "probe")
    evidence = (share, *_start(facts), *_batches(facts))
    if model.computes:
        return InputCause("decoding", WORK, evidence)
    if model.work <= WAITING:
        return InputCause("storage", STORAGE, evidence)
    return InputCause("storage and decoding", STORAGE, evidence)


def handed_over(facts: Facts) -> bool:
    """Whether workers are ahead of the loop, and half of its wait is taking a ready batch from them."""
    told = _fetches(facts)
    return (bool(facts.workers) and facts.summary is not None and told["asked"] >= FEWEST
            and told["ready"] >= READY * told["asked"]
            and told["ready_ns"] >= 0.5 * facts.summary.stages["data"])


def array_bytes(facts: Facts) -> int:
    """Bytes of a batch in arrays that are no tensors."""
    return _fetches(facts)["array_bytes"]


def _fetches(facts: Facts) -> Counter[str]:
    """What the probe looked at: fetches, those whose batch was ready and their ns, bytes of a batch."""
    told = mapping(facts.process.properties.get("batches")) if facts.process else {}
    return Counter({name: n for name, n in told.items() if isinstance(n, int)})


def _handing(facts: Facts) -> tuple[Evidence, ...]:
    told = _fetches(facts)
    return (Evidence("Fetches whose batch was ready", told["ready"] / told["asked"], "share"),
            Evidence("Such a fetch, mean", ms(told["ready_ns"]), "ms"))


def _batches(facts: Facts) -> tuple[Evidence, ...]:
    told = _fetches(facts) if facts.workers else Counter[str]()
    return tuple(Evidence(text, round(told[name] / 1e6), "MB") for name, text in (
        ("tensor_bytes", "Tensors of a batch, handed over in shared memory"),
        ("array_bytes", "Arrays of a batch, copied through a pipe")) if told[name] >= LARGE)


def _start(facts: Facts) -> tuple[Evidence, ...]:
    first = facts.summary.epochs.first_wait_ns if facts.summary else None
    if not facts.workers or first is None or first < SLOW_START_NS:
        return ()
    return (Evidence("The run's first batch, with the start of the workers", ms(first), "ms"),)
