"""Training scripts that do what they like between their steps: each step is seen, all runs as without us."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from profiler.analysis.steps import load_steps, training_process
from profiler.model import STEP_PARTIAL
from tests.record.looping import LONG, torch_script
from tests.record.running import PYTHON, environment, opened, record


def steps_of(folder: Path) -> int:
    with opened(folder) as run:
        steps = load_steps(run, training_process(run))
    return int((steps.flags & STEP_PARTIAL == 0).sum())


ODD = """
        import cProfile, faulthandler, gc, io, tempfile, threading, warnings

        def profiled():
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
                model(torch.randn(2, 4)).sum().backward()
            assert len(prof.key_averages()) > 3

        def counted():
            profile = cProfile.Profile()
            profile.enable()
            gc.collect()
            profile.disable()

        def traced():
            sys.setprofile(lambda *a: None)
            sys.settrace(lambda *a: None)
            model(torch.randn(2, 4))
            sys.setprofile(None)
            sys.settrace(None)

        def files():
            os.closerange(3, 1024)
            kept.append([open(os.devnull) for _ in range(20)])

        def handlers():
            for n in (signal.SIGURG, signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM):
                signal.signal(n, lambda n, f: got.append(n))
            for n in (signal.SIGURG, signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM):
                os.kill(os.getpid(), n)

        def limited():
            try:
                torch.empty(1 << 50)
            except RuntimeError as error:
                print("no memory:", "allocate" in str(error), flush=True)
            try:
                bytearray(1 << 62)
            except (MemoryError, OverflowError):
                pass

        def forked():
            if os.fork() == 0:
                model(torch.randn(2, 4)).sum().item()
                os._exit(3)
            print("child", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)

        def moved():
            os.chdir(tempfile.mkdtemp())
            os.umask(0o777)
            os.environ.clear()

        def threads():
            t = threading.Thread(target=lambda: model(torch.randn(2, 4)))
            t.start()
            t.join()

        def saved():
            buffer = io.BytesIO()
            torch.save(model.state_dict(), buffer)
            buffer.seek(0)
            model.load_state_dict(torch.load(buffer))

        def failing():
            try:
                model(torch.randn(2, 5))
            except RuntimeError:
                pass

        kept, got = [], []
        acts = [profiled, counted, traced, handlers, limited, forked, threads, saved, failing, files, moved]
        def between(step):
            time.sleep(0.01)
            if step % 5 == 4 and step // 5 < len(acts):
                acts[step // 5]()

        faulthandler.enable()
        warnings.simplefilter("error")
        train(DataLoader(Data(120), batch_size=2), between)
        assert len(got) == 4 and kept
        print("done", flush=True)
        """


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    """One script, 60 steps: each oddity between two of them."""
    folder = tmp_path_factory.mktemp("odd")
    path = torch_script(folder, ODD)
    env = environment(folder, KINETO_LOG_LEVEL="99")  # the script's own profiler would write to stderr
    return folder, record(folder, "--", PYTHON, path, env=env, timeout=LONG)


def test_oddities_between_steps_are_harmless(odd: tuple[Path, subprocess.CompletedProcess[bytes]]) -> None:
    _, done = odd
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"no memory: True\nchild 3\ndone\n"
    rest = [line for line in done.stderr.decode().splitlines() if not line.startswith("stepscope: ")]
    assert not rest


def test_oddities_between_steps_lose_no_step(odd: tuple[Path, subprocess.CompletedProcess[bytes]]) -> None:
    """All files were closed and others opened, the environment emptied: the spool goes on."""
    folder, _ = odd
    assert steps_of(folder) == 60
    with opened(folder) as run:
        told = {event.kind for event in run.events()}
        loops = [process for process in run.processes if process.role in ("target", "python")]
    assert not told & {"hook_off", "records_dropped", "spool_damaged", "probe_absent", "no_step"}
    assert len(loops) == 1  # the forked child had nothing to say


ENDS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    "at once": ("os._exit(9)", 9),
    "another program": ("os.execlp('sh', 'sh', '-c', 'exit 7')", 7),
}


@pytest.mark.parametrize("how", [*list(ENDS)[:1], *(pytest.param(h, marks=pytest.mark.slow)
                                                    for h in list(ENDS)[1:])])
def test_a_sudden_end_keeps_the_steps_before_it(tmp_path: Path, how: str) -> None:
    """At most a tenth of a second of steps is on its way."""
    act, code = ENDS[how]
    path = torch_script(tmp_path, f"""
        def between(step):
            time.sleep(0.01)
            if step == 59:
                print(time.monotonic(), flush=True)
                {act}
        train(DataLoader(Data(200), batch_size=2), between)
        """)
    done = record(tmp_path, "--", PYTHON, path, timeout=LONG)
    assert done.returncode == code
    assert re.fullmatch(rb"[\d.]+\n", done.stdout)
    assert 40 <= steps_of(tmp_path) <= 60
    with opened(tmp_path) as run:
        assert run.state == "partial"
