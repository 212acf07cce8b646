"""Recordings whose recorder, target or both are killed: one target, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.paths import own_command
from profiler.record import session
from profiler.record.private import remove_folder
from profiler.record.stop import carriers
from profiler.run.reader import Run
from tests.record.running import PYTHON, environment, script
from tests.waiting import until

LIMIT_S = 120.0  # for anything that ends by itself
SECOND = 1_000_000_000

# Sends steps as a probe does, and notes each of them in a file of its own once it is sent.
SENDS = """
    import json, os, pathlib, random, sys, time
    spool, pid = os.environ["STEPSCOPE_SPOOL"], os.getpid()
    log = open("log.new", "ab", buffering=0)
    log.write(b"%d\\n" % pid)
    os.rename("log.new", "log")
    now = time.monotonic_ns
    def send(*record):
        data = json.dumps(record).encode() + b"\\n"
        try:
            sent.write(data)
        except OSError:
            pass
    sent = open(f"{spool}/{pid}.0.spool", "ab", buffering=0)
    send("hello", {"version": 1, "pid": pid, "ppid": 1, "t": now(), "python": "3.11.2", "argv": ["x"],
                   "rank": None, "world": None})
    if TRACE:
        text = random.Random(1).randbytes(TRACE).hex()
        with open(f"{spool}/t.json", "w") as file:
            file.write(json.dumps({"traceEvents": [], "x": text}))
        begin = now()
        send("trace", begin, now(), "t.json", {"steps": [1, 2], "size": len(text), "valid": True})
    i, last = 0, now()
    while not os.path.exists("go"):
        time.sleep(0.01)
        t = now()
        send("step", i, last, t, 1000, 200, 300, 400, 50, 7, 8, 32, 1, 2, 9, 0)
        log.write(b"%d %d\\n" % (i, t))
        print("step", i, flush=True)
        i, last = i + 1, t
    print("x" * 200_000, flush=True)
    log.write(b"end\\n")
    sys.exit(7)
    """

# The same by a real loop under the real probe.
TRAINS = """
    import os, sys, time
    log = open("log.new", "ab", buffering=0)
    log.write(b"%d\\n" % os.getpid())
    os.rename("log.new", "log")
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    loader = DataLoader(TensorDataset(torch.randn(4_000_000, 8)), batch_size=4)
    for i, (x,) in enumerate(loader):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
        log.write(b"%d %d\\n" % (i, time.monotonic_ns()))
        if os.path.exists("go"):
            break
    print("x" * 200_000, flush=True)
    log.write(b"end\\n")
    sys.exit(7)
    """


@dataclass
class Kill:
    """What to kill, with what, and when: so many seconds after the phase has begun."""

    who: str  # recorder, target, both
    phase: str  # start, running, trace, finish
    after_s: float
    control: bool = False
    trains: bool = False
    number: signal.Signals = signal.SIGKILL


def planned(count: int, seed: int) -> list[Kill]:
    """So many kills, of every kind in turn, at moments by chance."""
    rng = random.Random(seed)
    kinds = [("recorder", "start", 0.35), ("recorder", "running", 3.0), ("both", "running", 2.5),
             ("recorder", "finish", 0.12), ("target", "running", 0.8), ("recorder", "trace", 1.5),
             ("both", "start", 0.35), ("recorder", "finish", 0.3), ("target", "start", 0.4),
             ("both", "trace", 1.0), ("both", "finish", 0.1)]
    return [Kill(who, phase, rng.uniform(0, longest), control=number % 4 == 3,
                 trains=number % 10 == 9 and phase == "running")
            for number in range(count) for who, phase, longest in [kinds[number % len(kinds)]]]


def _take_signals() -> None:
    """As a shell starts it: whoever runs the tests in the background has them ignored, and so would we."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Killed:
    """One recording in a folder of its own, and how it came out."""

    def __init__(self, folder: Path, kill: Kill) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.kill = folder, kill
        self.path = folder / "run.stepscope"
        self.loss_s: float | None = None
        self.found = "no file"
        self.killed_ns = 0
        self.code: int | None = None  # of the recorder
        self.again = 0  # further signals, soon after

    def go(self) -> None:
        """Record, kill, and check everything that must hold."""
        text = TRAINS if self.kill.trains else SENDS
        size = 3_000_000 if self.kill.phase == "trace" else 0
        path = script(self.folder, text.replace("TRACE", str(size)))
        command = [PYTHON, str(path)]
        if self.kill.who != "target":  # a shell between tells how it ended, whoever is there to ask
            command = ["sh", "-c", f"{PYTHON} {path}; code=$?; echo $code > status; exit $code"]
        mode = ["--control"] if self.kill.control else []
        argv = own_command("record", "-o", str(self.path), *mode, "--", *command)
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            recorder = subprocess.Popen(argv, cwd=self.folder, env=environment(self.folder), stderr=err,
                                        stdout=out, stdin=subprocess.PIPE, preexec_fn=_take_signals)
            try:
                self._kill(recorder)
                self._end(recorder)
            finally:
                recorder.kill()
                recorder.wait()
                assert recorder.stdin is not None
                recorder.stdin.close()
                for process in self._left():
                    process.kill()
        self._check_file()
        self._check_spool()

    def _kill(self, recorder: subprocess.Popen[bytes]) -> None:
        begin = time.monotonic()
        if self.kill.phase != "start":
            until(lambda: len(self._lines()) > 2, LIMIT_S, "the first steps")
            begin = time.monotonic()
        if self.kill.phase == "finish":
            (self.folder / "go").touch()
            until(lambda: self._lines()[-1:] == ["end"], LIMIT_S, "the end of the target")
            begin = time.monotonic()
        while (left := begin + self.kill.after_s - time.monotonic()) > 0:
            time.sleep(left)
        self.killed_ns = time.monotonic_ns()
        if self.kill.who in ("recorder", "both"):
            for _ in range(1 + self.again):
                recorder.send_signal(self.kill.number)
                time.sleep(0.01 if self.again else 0)
        if self.kill.who in ("target", "both") and (lines := self._lines()):
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(int(lines[0]), self.kill.number)

    def _end(self, recorder: subprocess.Popen[bytes]) -> None:
        if self.kill.number not in (signal.SIGTERM, signal.SIGHUP):  # they end the command as well
            (self.folder / "go").touch()
        code = self.code = recorder.wait(LIMIT_S)
        until(lambda: not self._left(), LIMIT_S, "nothing of ours is left")
        if self.kill.who == "target":
            assert code in (137, 7), code  # 7: it was not there yet
            assert not list((self.folder / "tmp").glob("stepscope-*"))
        started = (self.folder / "log").exists()
        if self.kill.who == "recorder" and started and self.kill.number == signal.SIGKILL:
            assert self._lines()[-1] == "end"
            assert (self.folder / "status").read_text() == "7\n"
            if not self.kill.control:
                assert (self.folder / "out").read_bytes().endswith(b"x" * 200_000 + b"\n")

    def _left(self) -> list[Any]:
        return carriers("TMPDIR", str(self.folder / "tmp"))

    def _lines(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def _check_file(self) -> None:
        if not self.path.exists():
            assert self.kill.phase == "start"
            return
        with Run.open(self.path) as run:
            self.found = run.state
            assert run.state in ("partial", "finished")
            offset = run.meta["start_ns"] - run.meta["start_monotonic_ns"]
            kept: set[int] = set()
            newest = 0
            for track in run.find("step.index"):
                times, values = run.values(track.id)
                kept |= {int(value) for value in values}
                newest = max([newest, *(int(t) - offset for t in times[-1:])])
            for track in run.tracks:
                run.series(track.id, points=50)
            for attachment in run.attachments():
                assert run.attachment(attachment.id)
            assert sorted(kept) == list(range(len(kept))), "a hole"
            self._measure(kept, newest)
        self._read_by_commands()

    def _measure(self, kept: set[int], newest: int) -> None:
        """Steps that were sent a second and more before the kill must be there."""
        sent = dict(map(int, line.split()) for line in self._lines() if " " in line)
        before = {i: t for i, t in sent.items() if t <= self.killed_ns}
        if self.kill.phase == "start" or not before or (self.kill.trains and not kept):
            return
        last = max(before.values())
        self.loss_s = max(0.0, (last - newest) / SECOND) if kept else (last - min(before.values())) / SECOND
        # the target's own stalls tell what a second is worth on this machine now
        times = sorted(before.values())
        stall = max((b - a for a, b in zip(times, times[1:], strict=False)), default=0) / SECOND
        assert self.loss_s <= 1.0 + 10 * stall, f"{self.loss_s:.2f} s are lost, longest stall {stall:.3f} s"

    def _read_by_commands(self) -> None:
        for argv in (["diagnose", str(self.path), "--json"],
                     ["report", str(self.path), "--format", "html", "-o", str(self.folder / "r.html")]):
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
                assert main(argv) == 0, argv
            if argv[0] == "diagnose":
                json.loads(out.getvalue())
        assert (self.folder / "r.html").stat().st_size

    def _check_spool(self) -> None:
        """The next recording leaves nothing of this one."""
        patch = pytest.MonkeyPatch()
        with patch.context() as context:
            context.setattr(tempfile, "tempdir", str(self.folder / "tmp"))
            new = session.make_spool()
            assert list((self.folder / "tmp").glob("stepscope-*")) == [new]
            remove_folder(new)
