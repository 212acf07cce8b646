"""The verdict of the last half minute, or of a finished run, as the strip says it. Free of Qt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.live.state import Live
from profiler.analysis.facts import HEALTH, Facts
from profiler.experiments.change import ENVIRONMENT, first_testable
from profiler.experiments.program import recorded_program
from profiler.model import Event
from profiler.rules.base import Finding
from profiler.rules.troubles import standing
from profiler.rules.verdict import Diagnosis, diagnose
from profiler.rules.words import setting, verdict_title
from profiler.run.reader import Run
from profiler.units import TIMES, format_ms, format_number, format_prediction, format_share

WINDOW_S = 30  # of a run that is being recorded: the verdict is about what it does now
FEWEST = 20  # steps in the window; with fewer the whole run is asked
EXPLAINS = 0.5  # of a cost: what another finding must account for
AGREED_S = 3.0  # so long a new verdict must hold before it replaces the shown one
STAGE = {
    "input_bound": "data", "transfer_bound": "h2d", "compute_bound": "forward", "sync_bound": "sync",
    "communication_bound": "communication", "host_bound": "other", "launch_bound": "other",
    "allocator_bound": "other",
}
SETTING = {"num_workers": "workers", "prefetch_factor": "prefetch", "pin_memory": "pinned memory",
           "persistent_workers": "persistent workers", "batch_size": "batch size"}
EMPTY_QUEUE_NS = 100_000
_MS = re.compile(r"(\d[\d\u00a0.]*\u00a0ms)")


@dataclass(frozen=True)
class VerdictData:
    """`word` is the verdict, or watching, waiting, warming. `sentence` is in parts: (text, strong)."""

    word: str
    title: str
    sentence: tuple[tuple[str, bool], ...] = ()
    detail: str = ""
    stage: str = ""  # whose hatch the flag wears
    confidence: str = ""
    remedy: str = ""  # workers 0 -> 8
    cause: str = ""  # the finding that it is of, where the verdict does not say as much
    advice: str = ""  # where no setting can be tried
    prediction: str = ""
    testable: bool = False  # a setting that verify can try: `remedy` is the one that it does
    experiment: Mapping[str, Any] = field(default_factory=dict)  # the newest stored test of that

    @property
    def settled(self) -> bool:
        return self.word not in ("watching", "waiting", "warming")


def query(run: Run, live: Live) -> VerdictData:
    if (early := before_steps(run, live)) is not None:
        return early
    diagnosis = recent(run, live) if run.state == "recording" else diagnose(run)
    return warming_up(run, diagnosis.facts) or _told(run, diagnosis)


def before_steps(run: Run, live: Live) -> VerdictData | None:
    """What is said of a run of which no step, or no step any more, tells anything; None where some do."""
    live.steps.update(run)
    if run.meta.get("kind") == "monitor" and not len(live.steps):
        return VerdictData("watching", "Watching", (("Devices and host, as long as it runs", False),))
    recording = run.state == "recording"
    if not len(live.steps) and run.meta.get("kind") != "import":
        return _no_steps(run, live, recording)
    if recording and (still := standing(live.events)):
        return _standing(still[-1], run.end_ns)
    return None


def warming_up(run: Run, facts: Facts) -> VerdictData | None:
    """What is said while a recording's step time has not settled; None afterwards."""
    if run.state == "recording" and (facts.lacks or not facts.steady.settled) and len(facts.steps) < 60:
        return VerdictData("warming", "Warming up", (("The step time has to settle first", False),),
                           f"A verdict is shown once it has held for {AGREED_S:g}\u00a0s.")
    return None


def recent(run: Run, live: Live) -> Diagnosis:
    """Of the last half minute of a run that is being recorded; of all of it where that holds few steps."""
    since = run.end_ns - WINDOW_S * 10**9
    if (live.steps.t1_ns >= since).sum() < FEWEST:
        return diagnose(run)
    return diagnose(run, since, run.end_ns)


def _no_steps(run: Run, live: Live, recording: bool) -> VerdictData:
    absent = [event.text for event in live.events if event.kind == "probe_absent"]
    if absent:
        return VerdictData("unknown", "No steps", ((absent[-1].split("\n")[0], False),))
    broken = _broken(live.events)
    if recording:
        return VerdictData("waiting", "Waiting for the first step",
                           ((broken[-1] if broken else "The machine is being recorded already", False),))
    if broken:
        return VerdictData("unknown", "No steps", ((broken[-1], False),))
    return VerdictData("unknown", "No steps", (("No process of this run sent steps", False),),
                       "A loop with a torch DataLoader, or a backward pass, is seen without a change to it.")


def _broken(events: Sequence[Event]) -> list[str]:
    """Errors that the GPUs reported, without those of a GPU that answers again."""
    found: dict[int, Event] = {}
    for event in events:
        if event.kind in HEALTH and event.severity == "error":
            found[event.id] = event
        elif event.kind == "device_back":
            found = {k: e for k, e in found.items() if (e.kind, e.device) != ("device_lost", event.device)}
    return [event.text for event in found.values()]


def _standing(event: Event, now_ns: int) -> VerdictData:
    """A loop of which no step comes any more: what it did until then is no answer."""
    since = event.data.get("since_ns")
    passed = (now_ns - since) / 1e9 if isinstance(since, int) else 0.0
    first, _, rest = event.text.split("\n")[0].partition(", ")
    head = f"No step for {passed:.0f}\u00a0s" if passed > 0 else first
    return VerdictData("unknown", "Standing still", ((head, True), (f", {rest}" if rest else "", False)),
                       "The command runs, and is left as it is.")


def _told(run: Run, diagnosis: Diagnosis) -> VerdictData:
    facts, word = diagnosis.facts, diagnosis.verdict
    tested = first_testable(diagnosis.findings, recorded_program(run.meta))
    finding = tested or next((f for f in diagnosis.findings if f.remedy is not None), None)
    advised = _advised(diagnosis) if finding is None else None
    remedy = remedy_text(finding.remedy.to_json()) if finding and finding.remedy else ""
    cause = advised or (finding if finding and finding.rule != word else None)
    return VerdictData(
        word, verdict_title(word), strong_parts(diagnosis.headline), _detail(facts, diagnosis),
        STAGE.get(word, ""), diagnosis.decision.confidence, remedy,
        cause.title if cause else "", advised.advice if advised else "", prediction_text(finding),
        tested is not None,
        {} if run.state == "recording" else _stored_test(run, finding),
    )


def _advised(diagnosis: Diagnosis) -> Finding | None:
    """Whose advice is shown: of a finding that only says the verdict again, the one that explains it."""
    said = [f for f in diagnosis.findings if f.advice]
    if not said or said[0].rule != diagnosis.verdict:
        return said[0] if said else None
    least = EXPLAINS * said[0].cost_ms
    return next((f for f in said[1:] if f.severity != "info" and f.cost_ms >= least), said[0])


def _stored_test(run: Run, finding: Finding | None) -> Mapping[str, Any]:
    """The newest test of this finding's remedy; where nothing is suggested, of whatever was tried."""
    tests = run.results("experiment")
    if finding is not None and finding.remedy is not None:
        wanted = finding.remedy.to_json()
        tests = [test for test in tests if test.get("remedy") == wanted]
    return tests[-1] if tests else {}


def strong_parts(sentence: str) -> tuple[tuple[str, bool], ...]:
    """The sentence in parts: milliseconds are strong, but for the step they are part of."""
    parts = [part for part in _MS.split(sentence) if part]
    following = [*parts[1:], ""]
    return tuple(
        (part, _MS.fullmatch(part) is not None and not after.startswith(" per step"))
        for part, after in zip(parts, following, strict=True)
    )


def _detail(facts: Facts, diagnosis: Diagnosis) -> str:
    """What stands behind the sentence, in one line."""
    summary = facts.summary
    if diagnosis.verdict in ("unknown", "compute_bound") or summary is None:
        reason = diagnosis.decision.reason
        return f"{reason[:1].upper()}{reason[1:]}." if reason else ""
    if not facts.on_device:
        cpu = facts.live.get("target.cpu")
        used = f" The command uses {format_number(cpu, 2)} of {facts.cores} cores." if cpu is not None else ""
        return f"Measured on the CPU.{used}"
    said = []
    if "gpu.util" in facts.live:
        said.append(f"GPU utilization {format_share(facts.live['gpu.util'])}.")
    lag = summary.lag.get("h2d", summary.lag.get("forward"))
    if lag is not None and lag < EMPTY_QUEUE_NS:
        said.append(f"The device queue is empty when the batch arrives (lag {format_ms(lag)}).")
    elif lag is not None:
        said.append(f"The device is {format_ms(lag)} behind when the batch arrives.")
    return " ".join(said)


def remedy_text(told: Mapping[str, Any]) -> str:
    """workers 0 to 4, with an arrow, of a remedy in its JSON form. Variables keep their names."""
    name = str(told["setting"])
    if not ENVIRONMENT.match(name):
        name = SETTING.get(name, name.replace("_", " "))
    return f"{name} {setting(told['from'])} \u2192 {setting(told['to'])}"


def prediction_text(finding: Finding | None) -> str:
    if finding is None or finding.prediction is None:
        return "without a prediction" if finding is not None else ""
    p = finding.prediction
    if p.at_most:
        return f"at most {format_number(p.speedup, 2)}\u00a0{TIMES}"
    return f"predicts {format_prediction(p.low, p.high)}"


class Agreement:
    """Holds a verdict until another one has been said for three seconds without a break."""

    def __init__(self, agreed_s: float = AGREED_S) -> None:
        self.agreed_s = agreed_s
        self.shown: VerdictData | None = None
        self._since = 0.0
        self._next: tuple[str, float] | None = None  # the other word, and since when it is said

    def feed(self, said: VerdictData, now: float, at_once: bool = False) -> bool:
        """Take what is said at `now` (s). True when the shown word changes."""
        if self.shown is not None and said.word == self.shown.word:
            self.shown, self._next = said, None
            return False
        if self._next is None or self._next[0] != said.word:
            self._next = said.word, now
        first = self._next[1]
        # What leads up to the first verdict need not wait: it is no claim.
        free = at_once or not said.settled or self.shown is None or self.shown.word == "waiting"
        if free or now - first >= self.agreed_s:
            self.shown, self._since, self._next = said, first, None
            return True
        return False

    def age(self, now: float) -> float:
        """Seconds since the shown word was first said."""
        return max(0.0, now - self._since)
