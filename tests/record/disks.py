"""Recordings on a disk that fills up or fails at some moment, and what must be true afterwards."""

from __future__ import annotations

import errno
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from profiler.paths import own_command
from profiler.run.reader import Run
from tests.fakes.disk import Disk
from tests.record.kills import LIMIT_S, SENDS
from tests.record.running import PYTHON, environment, script
from tests.waiting import until

STOPPED, GOES_ON, INCOMPLETE = "the recording has stopped", "the recording goes on", "incomplete"


@dataclass
class Full:
    """When the disk fills up or fails, and whether it is well again afterwards."""

    plan: str
    late: bool = False  # the plan holds only once the target has ended: while the -wal is folded
    control: bool = False
    well_again: bool = False


def planned(count: int, seed: int) -> list[Full]:
    """So many troubles, of every kind in turn, at moments by chance."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        code = rng.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT))
        first = rng.choice((rng.randint(1, 60), rng.randint(60, 400)))
        kinds = (Full(f"room {rng.randint(60_000, 500_000)}"),
                 Full(f"fail {first} {10**9} {code}"),
                 Full(f"fail {first} 1 {code}"),
                 Full("room 0", late=True),
                 Full(f"fail {rng.randint(1, 30)} {10**9} {code}"),
                 Full(f"room {rng.randint(60_000, 300_000)}", well_again=True),
                 Full(f"fail {rng.randint(1, 40)} 1 {code}", late=True))
        kind = kinds[number % len(kinds)]
        kind.control = rng.random() < 0.3
        found.append(kind)
    return found


class Recording:
    """One recording onto such a disk, in a folder of its own."""

    def __init__(self, folder: Path, library: Path, trouble: Full) -> None:
        self.folder, self.trouble = folder, trouble
        (folder / "disk").mkdir(parents=True)
        self.disk = Disk(library, folder / "disk", "" if trouble.late else trouble.plan)
        self.path = folder / "disk" / "run.stepscope"
        self.outcome = ""

    def go(self) -> None:
        """Record, and check everything that must hold."""
        path = script(self.folder, SENDS.replace("TRACE", "0"))
        mode = ["--control"] if self.trouble.control else []
        argv = own_command("record", "-o", str(self.path), *mode, "--", PYTHON, str(path))
        env = environment(self.folder, **self.disk.environment)
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err, \
                subprocess.Popen(argv, cwd=self.folder, env=env, stdin=subprocess.PIPE, stdout=out,
                                 stderr=err) as recorder:
            try:
                self._run(recorder)
            finally:
                recorder.kill()

    def _run(self, recorder: subprocess.Popen[bytes]) -> None:
        until(lambda: (self.folder / "log").exists() or recorder.poll() is not None, LIMIT_S, "a start")
        if not (self.folder / "log").exists():
            return self._check_refused(recorder)
        until(lambda: self._sent() >= 120 or STOPPED in self._told(), LIMIT_S, "steps")
        told_at = self._sent() if STOPPED in self._told() else None
        if self.trouble.well_again and told_at is not None:
            self.disk.plan("")
            until(lambda: GOES_ON in self._told(), LIMIT_S, "the recording goes on")
        if self.trouble.late:
            self.disk.plan(self.trouble.plan)
        until(lambda: self._sent() >= 120, LIMIT_S, "the target goes on")
        (self.folder / "go").touch()
        assert recorder.wait(LIMIT_S) == 7, self._told()  # the status is the command's
        return self._check(told_at)

    def _check_refused(self, recorder: subprocess.Popen[bytes]) -> None:
        """No run file could be made: told in one line, nothing was started, nothing is left."""
        self.outcome = "not begun"
        assert recorder.wait(LIMIT_S) == 2, self._told()
        lines = self._told().splitlines()
        assert len(lines) == 1 and "run.stepscope" in lines[0], lines
        assert not list(self.disk.folder.iterdir())
        assert not list((self.folder / "tmp").iterdir())

    def _check(self, told_at: int | None) -> None:
        assert (self.folder / "log").read_text().splitlines()[-1] == "end"
        told = self._told()
        stopped = STOPPED in told
        self.outcome = "went on" if GOES_ON in told else "stopped" if stopped else \
            "incomplete" if INCOMPLETE in told else "whole"
        assert "Traceback" not in told
        if stopped:
            assert "the command goes on" in told and INCOMPLETE in told
            if self.trouble.control:
                assert '"event": "error"' in (self.folder / "out").read_text(errors="replace")
        with Run.open(self.path) as run:
            kept = [int(v) for track in run.find("step.index") for v in run.values(track.id)[1]]
            kinds = [event.kind for event in run.events()]
            [run.series(track.id, points=50) for track in run.tracks]
            assert kept == sorted(set(kept))
            if self.outcome == "whole":
                assert run.state == "partial" and run.meta["exit"]["code"] == 7
                assert kept == list(range(self._sent()))
                left = Path(f"{self.path}-wal")
                assert not left.exists() or not left.stat().st_size
            elif self.outcome == "went on":
                assert "recording_gap" in kinds or kept == list(range(self._sent()))
            else:
                assert kept == list(range(len(kept)))
                if told_at is not None:
                    assert len(kept) >= told_at - 200

    def _sent(self) -> int:
        path = self.folder / "log"
        return path.read_text().count(" ") if path.exists() else 0

    def _told(self) -> str:
        return (self.folder / "err").read_text()


