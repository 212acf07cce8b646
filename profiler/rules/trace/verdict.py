"""The verdict from a trace: the largest predicted gain, else the largest class. Definitions, section 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profiler.rules.decision import FULL, GAIN, LARGE, NEARLY, SURE, Decision
from profiler.rules.words import class_title
from profiler.units import format_ms

WORTH = 0.05  # share of the window from which a class can be the verdict where nothing was predicted
EXACT = 0.02  # error of the unchanged replay up to which its predictions make a verdict sure
ENOUGH = 3  # counted steps

# Of several scenarios the better one counts.
SCENARIOS = {
    "input_bound": ("no_input_wait",), "transfer_bound": ("no_transfer", "overlapped_transfer"),
    "sync_bound": ("no_sync",), "launch_bound": ("no_launch_overhead",), "host_bound": ("no_host_work",),
    "allocator_bound": ("no_allocator",),
    "communication_bound": ("no_communication", "overlapped_communication"),
}
WITHOUT = {
    "no_input_wait": "with batches ready", "no_transfer": "without copies of the batch",
    "overlapped_transfer": "with the batch copied one step ahead", "no_sync": "without synchronisations",
    "no_launch_overhead": "with launches that cost nothing",
    "no_host_work": "without host work around the launches",
    "no_allocator": "without allocator calls", "no_communication": "without communication",
    "overlapped_communication": "with communication beside backward",
}
_WORDS = {
    "input_wait": "input_bound", "transfer_exposed": "transfer_bound", "transfer_host": "transfer_bound",
    "communication_exposed": "communication_bound", "sync": "sync_bound", "allocator": "allocator_bound",
    "queued": "launch_bound",
}  # waiting for another device has none: it is no cost of this one, nor of a launch
PEER = "queued:peer"


@dataclass(frozen=True)
class Shares:
    """Means over the counted steps, ns. `launching`: the part of `host` between first and last launch."""

    window: float
    classes: Mapping[str, float]
    launching: float
    steps: int

    def of(self, name: str) -> float:
        """Share of the window in [0, 1]; 0 of an empty window."""
        return self.classes.get(name, 0.0) / self.window if self.window else 0.0

    def word(self, name: str) -> str:
        """The verdict word that stands for a class other than compute; "" where none does."""
        if name.startswith("other:"):
            return "host_bound"
        if name == "host":
            return "launch_bound" if 2 * self.launching >= self.classes.get("host", 0.0) else "host_bound"
        return _WORDS.get(name, "")

    def waits(self) -> dict[str, float]:
        """Share of every class other than compute, the largest first."""
        found = {name: self.of(name) for name in self.classes if name != "compute"}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def large(self) -> list[str]:
        """Words of the classes that fill more than 15 % of the window; of `host` also of its parts."""
        words = [word for name, share in self.waits().items() if share > LARGE and (word := self.word(name))]
        host = self.classes.get("host", 0.0)
        for part, word in ((self.launching, "launch_bound"), (host - self.launching, "host_bound")):
            if self.window and part / self.window > LARGE:
                words.append(word)
        return list(dict.fromkeys(words))


def gains(speedups: Mapping[str, float]) -> dict[str, tuple[float, str]]:
    """Of each verdict word (speedup, scenario), the better scenario where there are two."""
    found = {}
    for word, names in SCENARIOS.items():
        known = [(speedups[name], name) for name in names if name in speedups]
        if known:
            found[word] = max(known)
    return found


def decide(shares: Shares, speedups: Mapping[str, float], error: float | None, withheld: str = "",
           step_ns: float | None = None) -> Decision:
    """The verdict of one process.

    `speedups` by scenario, empty where nothing was predicted: `withheld` then says why.
    `error`: of the bounded unchanged replay. `step_ns`: steady step time, for the reason.
    """
    if not shares.window:
        return Decision("unknown", reason="the window is empty")
    predicted = gains(speedups)
    if not predicted or withheld:
        return _from_classes(shares, withheld or "no prediction was asked for")
    order = sorted(predicted, key=lambda word: -predicted[word][0])
    first, (gain, scenario) = order[0], predicted[order[0]]
    compute = shares.of("compute")
    large = shares.large()
    if gain > GAIN:
        near = [word for word in order[1:] if predicted[word][0] - 1 >= NEARLY * (gain - 1)]
        also = tuple(word for word in dict.fromkeys([*near, *large]) if word != first)
        clear = gain >= SURE and error is not None and error <= EXACT and shares.steps >= ENOUGH
        return Decision(first, also, "high" if clear else "medium", _reason(scenario, gain, step_ns), gain)
    if compute >= FULL:
        reason = f"compute takes {100 * compute:.0f} % of a step, and nothing else would give more than 5 %"
        sure = "high" if shares.steps >= ENOUGH else "medium"
        return Decision("compute_bound", tuple(large), sure, reason, gain)
    return Decision("unknown", tuple(large), "low",
                    f"compute takes {100 * compute:.0f} % of a step, below 85 %, and no single cost that "
                    f"could be removed would give more than 5 %{_peer(shares)}", gain)


def _peer(shares: Shares) -> str:
    """A clause where waiting for another device is the largest class beside compute."""
    name, share = next(iter(shares.waits().items()), ("", 0.0))
    if name != PEER or share <= WORTH:
        return ""
    return f"; waiting for another device takes {100 * share:.0f} % of it"


def _reason(scenario: str, gain: float, step_ns: float | None) -> str:
    if step_ns is None:
        return f"{WITHOUT[scenario]} it would be {gain:.2f} times as fast"
    return (f"{WITHOUT[scenario]} a step would take {format_ms(step_ns / gain)}, "
            f"instead of {format_ms(step_ns)}")


def _from_classes(shares: Shares, why: str) -> Decision:
    """Where nothing is predicted: the word of the largest class, of low confidence."""
    compute = shares.of("compute")
    large = shares.large()
    if compute >= FULL:
        return Decision("compute_bound", tuple(large), "low",
                        f"compute takes {100 * compute:.0f} % of the time; {why}")
    name, share = next(iter(shares.waits().items()), ("", 0.0))
    if share <= WORTH:
        return Decision("unknown", tuple(large), "low",
                        f"compute takes {100 * compute:.0f} % of the time, below 85 %, and no other class "
                        f"more than 5 %; {why}")
    first = shares.word(name)
    if not first:
        return Decision("unknown", tuple(large), "low", "waiting for another device is the largest class "
                        f"beside compute, {100 * share:.0f} % of the time; {why}")
    return Decision(first, tuple(word for word in large if word != first), "low",
                    f"{class_title(name)} is the largest class beside compute, {100 * share:.0f} % "
                    f"of the time; {why}")
