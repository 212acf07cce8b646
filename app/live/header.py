"""What the run bar says about a run: its settings as chips, its state, how its target ended. Free of Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from app.document import RunInfo
from profiler.model import mapping

OURS = {"stopped": "stopped", "steps": "finished", "duration": "finished", "detached": "detached"}
_SHOWN = (("batch_size", "batch"), ("num_workers", "workers"), ("workers", "workers"))


@dataclass(frozen=True)
class Chip:
    text: str
    kind: str = "plain"
    icon: str = ""
    tooltip: str = ""


def chips(info: RunInfo) -> list[Chip]:
    """The settings that a reader asks for first: what runs, batch, workers, precision, the device."""
    workload = mapping(info.meta.get("workload"))
    settings = dict(mapping(workload.get("settings")))
    loader: Mapping[str, Any] = next((p.properties["loader"] for p in info.processes
                   if isinstance(p.properties.get("loader"), Mapping)), {})
    told = {key: settings.get(key, loader.get(key)) for key, _ in _SHOWN}
    found = []
    command = info.meta.get("command")
    if name := workload.get("name"):
        if str(name) != info.name:  # the name of the run may be just that
            found.append(Chip(str(name)))
    elif isinstance(command, list) and command:
        found.append(Chip(command_name(command), tooltip=" ".join(map(str, command))))
    words = {word: told[key] for key, word in _SHOWN if told[key] is not None}
    found += [Chip(f"{word} {value}") for word, value in words.items()]
    if precision := settings.get("precision"):
        found.append(Chip(str(precision)))
    if not info.devices and mapping(info.meta.get("gpu")).get("state") == "absent":
        found.append(Chip("CPU", icon="cpu"))
    return found


def command_name(command: list[Any]) -> str:
    """The script, or the program where there is none."""
    words = [str(word) for word in command]
    for before, word in zip(["", *words], words, strict=False):
        if word.endswith(".py") or before == "-m":
            return PurePath(word).name
    return PurePath(words[0]).name


def ending(info: RunInfo) -> Chip | None:
    """How a recording that is over ended; None while it runs."""
    if info.state == "recording":
        return None
    end = mapping(info.meta.get("exit"))
    code, signal = end.get("code"), end.get("signal")
    if end.get("reason") in OURS:
        return Chip(OURS[end["reason"]], tooltip="Ended by the recorder, as it was told to")
    if signal:
        return Chip(f"killed by {signal}", "err", tooltip=str(end.get("reason") or ""))
    if isinstance(code, int) and code != 0:
        return Chip(f"exit code {code}", "err", tooltip=str(end.get("reason") or ""))
    if info.state == "partial":
        return Chip("partial", "warn", tooltip="The recorder ended early; what it had written is here")
    return Chip("finished", "plain")


def failed(info: RunInfo) -> bool:
    """Whether the target ended badly: then the end of its output is worth seeing."""
    chip = ending(info)
    return chip is not None and chip.kind == "err"
