"""Record a command or a workload while it runs.

    stepscope record -- python train.py --epochs 3
    stepscope record --workload input_starved --set workers=2

The command runs as without StepScope: same terminal, input, output, working
directory and exit status; 128 + n when signal n ended it. When --steps or
--duration ended it, the status is 0. By default the recording is light;
--trace-steps asks for one torch.profiler window as well, --trace-every for one
again and again. Everything after -- belongs to the command.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profiler.cli import _recording
from profiler.errors import TargetError, UsageError
from profiler.record.options import Options, status_of

MOST_STEPS, MOST_TRACED = 10**12, 1000
_INTERVENE = """what the probe changes in the command, its code untouched, e.g. '{"num_workers": 4}'.
    Of loaders: num_workers, prefetch_factor, pin_memory, persistent_workers. For the loop: cached_batch
    (the first batch again and again), device_batch (the same, on the GPU), loader_only (true, or a number of
    batches: nothing is done with them, then the program ends), forward_only; inference where there is no
    backward. Of torch: matmul_precision, cudnn_benchmark, threads. The run tells what was applied"""
_LAUNCHERS = {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
_INTERPRETERS = {".py": "python", ".sh": "sh"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] (--workload NAME [--set KEY=VALUE ...] | -- COMMAND ...)"
    parser.add_argument("--workload", metavar="NAME", help="a workload of ours: see stepscope workloads")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                        help="a setting of the workload; may be given many times")
    parser.add_argument("--data", type=Path, metavar="DIR",
                        help="images, text or WAV files for the workload, instead of what it makes itself")
    _recording.add_common(parser)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N training steps")
    parser.add_argument("--trace-steps", type=int, metavar="N",
                        help="profile N steps with torch.profiler, after the warm-up (default: none)")
    parser.add_argument("--trace-every", type=float, metavar="S",
                        help="such a window every S seconds (8 steps each without --trace-steps)")
    parser.add_argument("--lifeline", action="store_true",
                        help="end the command when the recorder dies (workloads always do)")
    parser.add_argument("--intervene", metavar="JSON", help=_INTERVENE)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...",
                        help="what to run and record")


def run(args: argparse.Namespace) -> int:
    with _recording.errors_told(args):
        outcome = _recording.recorded(_options(args))
    if outcome.code is None:
        return 0 if outcome.reason == "detached" else 1
    return 0 if outcome.reason in ("steps", "duration") else status_of(outcome.code)


def _options(args: argparse.Namespace) -> Options:
    _recording.check_common(args)
    for option, value, most in (("--steps", args.steps, MOST_STEPS),
                                ("--trace-steps", args.trace_steps, MOST_TRACED)):
        if value is not None and not 1 <= value <= most:
            raise UsageError(f"{option} {value} is out of range", f"It is 1 to {most}")
    if args.trace_every is not None and not 0 < args.trace_every < math.inf:
        raise UsageError(f"--trace-every {args.trace_every:g} is not a time", "Give seconds above 0")
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    workload: dict[str, Any] = {}
    if args.workload is not None:
        if command:
            raise UsageError("both a workload and a command are given", "Record one of them")
        command, workload = _workload(args)
    elif args.settings or args.data:
        raise UsageError(f"{'--set' if args.settings else '--data'} goes with --workload",
                         "Settings of your own command go after --")
    else:
        try:
            _check_command(command)
        except OSError as error:  # a name that is too long, a folder that is closed to us
            raise TargetError(f"command cannot be found: {command[0]}: {error.strerror}",
                              "Check its path") from None
    name = args.name or args.workload or _name(command)
    return Options(
        output=_recording.output_path(args.output, name, args.force),
        overwrite=args.force and args.output is not None, renumber=args.output is None,
        command=tuple(command), workload=args.workload, name=name, notes=args.notes,
        rate_hz=args.rate, duration_s=args.duration, steps=args.steps, trace_steps=args.trace_steps,
        trace_every_s=args.trace_every, intervene=_intervene(args.intervene), lifeline=args.lifeline,
        control=args.control, json_result=args.json, **workload)


def _workload(args: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Its command line, and what the options of the recording say of it."""
    from profiler import catalog

    info = catalog.get(args.workload)
    values = catalog.parse_settings(info, args.settings)
    data = None
    if args.data is not None:
        data = args.data.absolute()
        catalog.check_data(info.name, data)
    told = {"settings": values, "data": data, "work": catalog.work_per_sample(info.name, values)}
    return catalog.workload_command(info.name, values, data), told


def _check_command(command: Sequence[str]) -> None:
    """Tell what is wrong with it before a run file is made."""
    if not command:
        raise UsageError("nothing to record", "Add -- COMMAND, or --workload NAME")
    name = command[0]
    if os.sep not in name:
        if shutil.which(name) is None:
            script = Path(name).suffix in _INTERPRETERS and Path(name).is_file()
            raise TargetError(f"command not found: {name}", _by_interpreter(name) if script else
                              "Check its spelling, or give its path")
        return
    path = Path(name)
    if not path.exists():
        raise TargetError(f"command not found: {name}", "Check its path")
    if path.is_dir():
        raise TargetError(f"command cannot be executed: {name} is a folder", "Name a program in it")
    if not os.access(path, os.X_OK):
        raise TargetError(f"command cannot be executed: {name} is not executable", _by_interpreter(name))


def _by_interpreter(name: str) -> str:
    interpreter = _INTERPRETERS.get(Path(name).suffix)
    return f"Run it by its interpreter: {interpreter} {name}" if interpreter else f"Use chmod +x {name}"


def _name(command: Sequence[str]) -> str:
    """What to call a run: the script, the module after -m (a launcher's script), else the program."""
    program, *rest = command
    if Path(program).name.startswith(("python", "torchrun", "accelerate", "uv")):
        for before, word in zip(["", *rest], rest, strict=False):
            if before == "-m" and word not in _LAUNCHERS:
                return word
            if not word.startswith("-") and word.endswith(".py"):
                return Path(word).stem
    return Path(program).name


def _intervene(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError("--intervene is not a JSON object", 'For example {"num_workers": 4}')
    known = importlib.import_module("profiler.probe._stepscope_probe.wanted")  # by name: it has no types
    unknown, wrong = known.refused({name: given for name, given in value.items() if given is not None})
    if unknown:
        raise UsageError(f"--intervene {unknown[0]}: there is no such setting",
                         f"There are {', '.join(known.SETTINGS)}")
    if wrong:
        name, given = wrong[0]
        raise UsageError(f"--intervene {name}={given} cannot be used", f"It takes {known.SETTINGS[name][0]}")
    return value
