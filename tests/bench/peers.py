"""What StepScope and its public peers say about programs whose bottleneck is known, side by side.

    python tests/bench/peers.py [SCRIPT ...] [--python PEERS] [--json]

SCRIPT is a file of tests/known; default: all. Each program runs alone first, then under each
tool, one after the other, as the tool's own README tells for a script that is not changed; gpuprof
needs two lines, which a file beside the script has for it. For each the table gives the seconds
until its answer and what it says of the bottleneck, in its own words.

The peers (train-doctor, gpuprof, traceml-ai) are installed from the package index into a virtual
environment of their own that sees the torch of this one; --python names an interpreter that has them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profiler.paths import own_command  # noqa: E402
from profiler.rules.words import listed, prediction  # noqa: E402

KNOWN = ROOT / "tests" / "known"
PEERS = ("train-doctor", "gpuprof", "traceml-ai")
LIMIT_S = 300
WRAPPED = """import runpy, sys
import gpuprof
del sys.argv[0]
with gpuprof.profile("run"):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Failed(Exception):
    """A tool that ends with a status other than 0."""


@dataclass(frozen=True)
class Answer:
    """What a tool said about a script: lines of its own, after so many seconds."""

    script: str
    tool: str
    seconds: float
    says: tuple[str, ...]


def stepscope(python: Path, script: Path, folder: Path) -> tuple[str, ...]:
    """Recorded and diagnosed."""
    run = folder / "run.stepscope"
    _output(own_command("record", "-o", str(run), "--", str(python), str(script)), folder)
    told = json.loads(_output(own_command("diagnose", "--json", str(run)), folder))
    findings = (f"[{one['severity']}] " + listed((one["title"], one["advice"], _predicted(one["prediction"])))
                for one in told["findings"])
    return f"{told['verdict']}: {told['headline']}", *findings


def _predicted(told: Mapping[str, Any] | None) -> str:
    return f"predicts {prediction(told)}" if told else ""


def train_doctor(python: Path, script: Path, folder: Path) -> tuple[str, ...]:
    """`train-doctor profile`: split of the step, and findings with their upper bound."""
    text = _output([str(python.parent / "train-doctor"), "profile", "--", str(python), str(script)], folder)
    return _lines(text, r"step time|split:|\d+\. \[|expected:|no findings|findings: none")


def gpuprof(python: Path, script: Path, folder: Path) -> tuple[str, ...]:
    """The summary that it prints at the end."""
    wrapper = folder / "wrapped.py"
    wrapper.write_text(WRAPPED)
    return _lines(_output([str(python), str(wrapper), str(script)], folder), r"\[\w+\] |gap:|steps, avg")


def traceml(python: Path, script: Path, folder: Path) -> tuple[str, ...]:
    """`traceml run`: its verdict and why."""
    text = _output([str(python.parent / "traceml"), "run", str(script)], folder)
    return _lines(text, r"Verdict:|Why:")


TOOLS: dict[str, Callable[[Path, Path, Path], tuple[str, ...]]] = {
    "stepscope": stepscope, "train-doctor profile": train_doctor, "gpuprof": gpuprof, "traceml run": traceml}


def answers(script: Path, python: Path) -> list[Answer]:
    """Of every tool, and how long the script takes alone."""
    found = []
    for tool, ask in {"alone": _alone, **TOOLS}.items():
        with tempfile.TemporaryDirectory() as name:
            begin = time.monotonic()
            try:
                says = ask(python, script, Path(name)) or ("nothing of a bottleneck",)
            except Failed as failed:
                says = (str(failed),)
            found.append(Answer(script.stem, tool, time.monotonic() - begin, says))
    return found


def environment(folder: Path) -> Path:
    """A virtual environment with the peers in `folder`; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    shared = folder / "lib" / version / "site-packages" / "shared.pth"
    shared.write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


def show(answer: Answer) -> str:
    """The tool and its time on a line, then what it says."""
    return "\n".join((f"  {answer.tool}, {answer.seconds:.0f} s", *(f"      {line}" for line in answer.says)))


def _alone(python: Path, script: Path, folder: Path) -> tuple[str, ...]:
    _output([str(python), str(script)], folder)
    return ((ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("\n")[0],)


def _output(command: Sequence[str], folder: Path) -> str:
    """What a command prints. Failed when it fails."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise Failed(f"fails with status {done.returncode}: {last}")
    return done.stdout


def _lines(text: str, wanted: str) -> tuple[str, ...]:
    """Lines that hold the pattern, without frames and numbering."""
    return tuple(line.strip(" |\t") for line in text.splitlines() if re.search(wanted, line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scripts", metavar="SCRIPT", nargs="*", type=Path)
    parser.add_argument("--python", type=Path, help="an interpreter that has torch and the peers")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        python = args.python.absolute() if args.python else environment(Path(name) / "peers")
        every = []
        for script in args.scripts or sorted(KNOWN.glob("[!_]*.py")):
            if not args.json:
                print(script.stem, flush=True)
            for answer in answers(script.resolve(), python):
                every.append(answer)
                if not args.json:
                    print(show(answer), flush=True)
    if args.json:
        print(json.dumps([asdict(answer) for answer in every], indent=1))


if __name__ == "__main__":
    main()
