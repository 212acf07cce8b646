from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.paths import own_command
from profiler.record.stop import carriers
from profiler.run.reader import Run
from tests.experiments.spooling import PROGRAM, recorded
from tests.record.running import environment, script
from tests.waiting import until


def ceilings(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(own_command("ceilings", *args), cwd=folder, env=environment(folder, **env),
                          capture_output=True, text=True, timeout=240)


def stored(path: Path) -> list[dict[str, Any]]:
    with Run.open(path) as run:
        return run.results("ceilings")


def test_of_a_run_is_printed_and_kept_in_it(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    done = ceilings(tmp_path, str(path), "--repeats", "1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert stored(path) == [told]
    ms = {stage["name"]: stage["step_ms"]["median"] for stage in told["stages"]}
    advised = ms.pop("loader_advised")
    assert ms == {"real": 25.0, "loader": 20.0, "cached": 5.0, "forward": 2.5}
    assert told["leaning"]["on"] == "loader" and told["leaning"]["how"] == "adds"
    assert told["loader_ms"]["0"] == 20.0 and advised in told["loader_ms"].values()
    lines = done.stderr.splitlines()
    assert lines[0].startswith("5 recordings of 60 steps, about") and lines[1].startswith("It starts ")
    assert len([line for line in lines if line.startswith("round 1, ")]) == 5
    assert list((tmp_path / "tmp").iterdir()) == []  # the recordings are gone


def test_of_a_command_in_words_with_a_stage_that_breaks(tmp_path: Path) -> None:
    path = script(tmp_path, PROGRAM, "train.py")
    done = ceilings(tmp_path, "--repeats", "2", "--keep", "kept", "--", sys.executable, str(path),
                    FAILS="forward_only")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Without workers the times add: 20.0\u00a0ms for the loader")
    assert "Left out: round 1, forward alone: it ended with status 1" in done.stdout
    assert "it broke" in done.stdout
    assert "Not measured: no input, no copies (kept on the device): on the CPU" in done.stdout
    assert done.stderr.startswith("At most 10 recordings")
    assert len(list((tmp_path / "kept").glob("*.stepscope"))) == 8


def test_a_program_that_takes_no_intervention(tmp_path: Path) -> None:
    path = script(tmp_path, PROGRAM, "train.py")
    done = ceilings(tmp_path, "--repeats", "1", "--", sys.executable, str(path), DEAF="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No stage was measured alone")
    assert "loader_only was not applied" in done.stdout


def test_a_program_that_fails(tmp_path: Path) -> None:
    done = ceilings(tmp_path, "--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.returncode == 2 and done.stdout == ""
    assert "status 3" in done.stderr.splitlines()[-1]
    # a command is started as it is: braces are no placeholders
    done = ceilings(tmp_path, "--", sys.executable, "-c", "raise SystemExit('said {x}')")
    assert done.stderr.splitlines()[-1].endswith("it said: said {x}")


def test_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    mark, log = uuid.uuid4().hex, tmp_path / "err"
    with log.open("w") as err:
        process = subprocess.Popen(
            own_command("ceilings", str(path)), cwd=tmp_path, stderr=err, stdout=subprocess.DEVNULL,
            env=environment(tmp_path, STEPSCOPE_TEST_MARK=mark))
        until(lambda: "loader alone:" in log.read_text(), 60)
        (tmp_path / "slow").touch()  # from now on a recording takes minutes
        until(lambda: len(carriers("STEPSCOPE_TEST_MARK", mark)) > 2, 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, log.read_text()
    until(lambda: not carriers("STEPSCOPE_TEST_MARK", mark))
    (told,) = stored(path)
    assert told["interrupted"] and {"real", "loader"} <= {stage["name"] for stage in told["stages"]}


@pytest.mark.parametrize(("args", "says"), [
    ([], "nothing to measure"), (["a.stepscope", "--workload", "x"], "both a run and a workload"),
    (["--set", "a=1", "--", "true"], "--set goes with --workload"), (["none.stepscope"], "none.stepscope"),
    (["--workload", "nonesuch"], "nonesuch"), (["--", "no-such-command"], "command not found"),
    (["--repeats", "0", "--", "true"], "--repeats 0"), (["--steps", "3", "--", "true"], "--steps 3")])
def test_bad_input_is_one_line(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ceilings", *args]) == 2
    out, err = capsys.readouterr()
    assert out == "" and says in err and len(err.splitlines()) <= 2


PLAIN = """
    import time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 10_000

        def __getitem__(self, i):
            time.sleep(0.003)
            return torch.randn(16), i % 2

    torch.set_num_threads(1)
    model = torch.nn.Linear(16, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Slow(), batch_size=10):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.004)
"""


@pytest.mark.slow
def test_a_plain_script_goes_through_unedited(tmp_path: Path) -> None:
    path = script(tmp_path, PLAIN, "train.py")
    text = path.read_text()
    done = ceilings(tmp_path, "--repeats", "1", "--steps", "40", "--json", "--", sys.executable, str(path))
    assert done.returncode == 0, done.stderr
    assert path.read_text() == text
    told = json.loads(done.stdout)
    ms = {stage["name"]: stage["step_ms"]["median"] for stage in told["stages"]}
    assert ms.keys() == {"real", "loader", "cached", "forward"}
    assert told["leaning"]["on"] == "loader" and told["leaning"]["how"] in ("adds", "between", "reaches")
    assert ms["loader"] > 30.0 and min(ms["cached"], ms["forward"]) > 4.0
    assert ms["cached"] < ms["loader"] < 1.3 * ms["real"]
