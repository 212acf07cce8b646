"""A diagnosis in words: the one way in which command line, report and window say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from profiler.metrics import METRICS
from profiler.units import (
    NBSP,
    format_bandwidth,
    format_ms,
    format_number,
    format_prediction,
    format_value,
    ms_decimals,
)

UNITS = {metric.unit for metric in METRICS.values()}
WEIGHTS = {"error": "major", "warning": "minor", "info": "note"}  # of findings: nothing is broken
SCORES = {"hit": "the measured ratio lies in the predicted interval",
          "miss": "the measured ratio lies outside the predicted interval",
          "vague": "the predicted interval is too wide to count as a hit or a miss",
          "not scored": "the prediction is an upper bound"}
FLAGS = {"input_bound": "data", "transfer_bound": "h2d", "compute_bound": "forward", "sync_bound": "sync",
         "communication_bound": "communication"}

# In kernels' names: namespaces, what every elementwise kernel has, lambdas around the last one.
_NOISE = re.compile(r"\(anonymous namespace\)::|at::native::|"
                    r", (?:at::detail::Array|std::array)<char\*, \d+(?:ul)?>|"
                    r"\{lambda\(\)#\d+\}::operator\(\)\(\) const::")
CLASSES = {"compute": "compute", "communication_exposed": "communication, exposed",
           "transfer_exposed": "copies, exposed", "queued": "queued",
           "queued:peer": "waiting for another device",
           "input_wait": "data wait", "allocator": "memory calls", "transfer_host": "staging of copies",
           "sync": "synchronisation", "host": "host"}
# Whose colour a class wears; the others are grey with their names.
CLASS_STAGES = {"compute": "forward", "communication_exposed": "communication", "transfer_exposed": "h2d",
                "transfer_host": "h2d", "input_wait": "data", "sync": "sync"}
SCENARIOS = {"no_input_wait": "batches ready", "no_transfer": "no copies of the batch",
             "overlapped_transfer": "copies one batch ahead", "no_sync": "no synchronisation",
             "no_launch_overhead": "launches cost nothing", "no_host_work": "no host work around launches",
             "no_allocator": "no memory calls", "no_communication": "no communication",
             "overlapped_communication": "communication beside backward",
             "no_core_wait": "a core for the loop at all times",
             "compute_half": "kernels twice as fast"}


def class_title(name: str) -> str:
    """A class of the partition in words; host work under an annotation by the annotation's name."""
    return CLASSES.get(name) or name.removeprefix("other:")


def kernel_title(name: str) -> str:
    """A kernel's name without its return type, its arguments, and namespaces that say nothing."""
    text = _NOISE.sub("", name.removeprefix("void "))
    depth, end = 0, len(text)
    while text.endswith(")") and end:  # back to the bracket that opens the arguments
        end -= 1
        depth += (text[end] == ")") - (text[end] == "(")
        if not depth:
            return text[:end] or text
    return text


def frame_title(frame: str) -> str:
    """A frame of a call stack, of an installed package without the folders before it."""
    return re.split(r"(?:site|dist)-packages/", frame.strip())[-1]


def scenario_title(name: str) -> str:
    """A scenario of the replay in words."""
    return SCENARIOS.get(name, name)


def verdict_title(word: str) -> str:
    """Input-bound for input_bound."""
    text = word.replace("_", "-")
    return text[:1].upper() + text[1:]


def evidence_line(item: Mapping[str, Any]) -> str:
    """One piece of evidence on one line: "Loader wait: 36.2 ms (probe)"."""
    text, value, source = evidence(item)
    return f"{text}: {value} ({source})" if value else f"{text} ({source})"


def evidence(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """(what, value with unit, source) of one piece of evidence; value is empty where it has none."""
    value, unit = item["value"], item["unit"]
    if value is None:
        text = ""
    elif isinstance(value, str):
        text = value
    elif unit == "ms":
        text = format_ms(value * 1e6, ms_decimals(value * 1e6) if value else 1)
    elif unit == "s":
        text = f"{format_number(value, 1)}{NBSP}s"
    elif unit == "count":
        text = format_number(value, 0 if float(value).is_integer() else 2)
    elif unit == "B/s":
        text = format_bandwidth(value)
    elif unit not in UNITS and float(value).is_integer():
        one = value == 1 and unit.isalpha()
        text = f"{format_number(value)}{NBSP}{unit.removesuffix('s') if one else unit}".strip(NBSP)
    else:
        text = format_value(value, unit)
    return item["text"], text, item["source"]


def setting(value: Any) -> str:
    """A setting's value as a user would write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "unset"
    return format_plain(value) if isinstance(value, float) else str(value)


def format_plain(value: float) -> str:
    return f"{value:g}"


def remedy(told: Mapping[str, Any] | None) -> str:
    """num_workers 0 to 4, with an arrow."""
    return f"{told['setting']} {setting(told['from'])} \u2192 {setting(told['to'])}" if told else ""


def prediction(told: Mapping[str, Any] | None) -> str:
    if not told:
        return ""
    if told.get("at_most"):
        return f"at most {format_prediction(told['high'], told['high'])}, not scored"
    return format_prediction(told["low"], told["high"])


def score(told: Mapping[str, Any]) -> str:
    """What an experiment's score means; "" where there is nothing to score."""
    if told.get("score") != "not scored":
        return SCORES.get(str(told.get("score")), "")
    predicted = told.get("prediction")
    if not predicted:
        return ""
    if predicted.get("at_most"):
        return SCORES["not scored"]
    return "it is of steps, not of requests" if told.get("unit") == "request" else \
        "too few pairs count for that"


def parity(told: Mapping[str, Any] | None) -> str:
    """Whether a remedy left the work as it was: "The loss agrees at step 60/60: 2.31 and 2.31"."""
    what = (told or {}).get("what") or "loss"
    if not told or told["state"] == "not compared":
        why = (told or {}).get("why")
        return f"The {what} was not compared{': ' + why if why else ''}"
    at = f" at {told['at']}" if told["at"] else ""
    values = f"{format_number(told['a'], 4)} and {format_number(told['b'], 4)}"
    if told["state"] == "not repeatable":
        return f"The {what} was not compared: it differs between runs with the same settings{at}"
    return f"The {what} {told['state']}{at}: {values}"


def failure(told: Any) -> str:
    """How a command that failed ended, from the run's `exit`: "was ended by SIGSEGV"; "" when it did not."""
    match told:
        case {"signal": str(name)}:
            return f"was ended by {name}"
        case {"code": int(code)} if code:
            return f"ended with status {code}"
    return ""


def pairs(values: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Names and values for a two-column list; what is missing is left out."""
    return [(str(key), setting(value)) for key, value in (values or {}).items() if value not in (None, "")]


def listed(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)
