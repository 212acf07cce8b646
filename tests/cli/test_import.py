"""`stepscope import`, and what the other commands make of the run."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.rules.trace import stored
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.version import code_digest
from tests.rules.trace.loops import later, loop, step_ms
from tests.traces import EPOCH_US

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def trace(tmp_path):
    line = loop(wait_us=400).memory(1000, 512, allocated=2048, reserved=4096)
    return str(line.save(tmp_path / "t.json.gz"))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.stepscope"


def told(capsys, *argv):
    assert main([*map(str, argv), "--json"]) == 0
    out, _ = capsys.readouterr()
    return json.loads(out)


def test_a_run_of_a_trace(trace, out, capsys):
    assert main(["import", trace, "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{out}: 5 steps counted by ProfilerStep, input-bound\n")
    with Run.open(out) as run:
        assert run.state == "finished" and run.meta["kind"] == "import" and run.meta["name"] == "t"
        assert run.start_ns == EPOCH_US * 1000
        [device], [process], [attachment] = run.devices, run.processes, run.attachments()
        assert device.name == "NVIDIA H100 80GB HBM3" and device.memory_total == 80 << 30
        assert process.pid == 4242 and process.rank is None
        assert run.attachment(attachment.id) == Path(trace).read_bytes()
        [wall], [data] = run.find("step.wall"), run.find("step.data")
        assert run.values(wall.id)[1].tolist() == [round(1e6 * step_ms(400))] * 6
        assert run.values(data.id)[1].tolist() == [400_000.0] * 6
        [memory] = run.find("torch.mem_allocated")
        assert run.values(memory.id)[1].tolist() == [2048.0]


def test_a_run_that_other_code_analysed_says_so_and_is_analysed_anew(trace, out, capsys, monkeypatch):
    assert main(["import", trace, "-o", str(out)]) == 0
    monkeypatch.setattr(stored, "engine", lambda: "other code")
    with Run.open(out) as run:
        stale = diagnose(run)
    assert stale.verdict == "unknown" and "stepscope diagnose RUN" in stale.decision.reason
    assert main(["report", str(out)]) == 0
    assert "Input-bound" in out.with_suffix(".html").read_text(encoding="utf-8")
    with Run.open(out) as run:
        assert diagnose(run).verdict == "input_bound"
        assert [result["engine"] for result in run.results(stored.KIND)][1:] == ["other code"]


def test_what_made_a_result_is_a_digest_of_the_code(tmp_path, monkeypatch):
    def digest(**files):
        for name, text in files.items():
            file = tmp_path / "profiler" / name / "x.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        code_digest.cache_clear()
        return stored.engine()

    own = stored.engine()
    assert stored.engine() == own and len(own) == 16
    with monkeypatch.context() as patch:
        patch.setattr("profiler.version.HOME", tmp_path)
        first = digest(replay="a = 1", cli="b = 1")
        assert digest(cli="b = 2") == first != digest(replay="a = 2")
        assert digest(replay="a = 1") == first != own
    assert digest() == own


def test_a_run_made_without_predictions_gets_them_when_they_are_asked_for(trace, out, capsys):
    assert main(["import", trace, "-o", str(out), "--no-what-if"]) == 0
    capsys.readouterr()
    assert told(capsys, "diagnose", out, "--no-what-if")["what_if"] is None
    assert told(capsys, "diagnose", out)["what_if"] == told(capsys, "diagnose", trace)["what_if"]
    assert told(capsys, "diagnose", out, "--no-what-if")["what_if"] is None


def test_windows_of_one_process_are_one_process(tmp_path, out, capsys):
    files = [loop(wait_us=400).save(tmp_path / "a.json"),
             later(loop(9, number=30), 1_000_000_000).save(tmp_path / "b.json")]
    assert main(["import", *map(str, files), "-o", str(out)]) == 0
    capsys.readouterr()
    with Run.open(out) as run:
        assert len(run.processes) == 1 and len(run.attachments()) == 2
        [wall] = run.find("step.wall")
        times, walls = run.values(wall.id)
        assert walls.tolist() == [round(1e6 * step_ms(400))] * 6 + [round(1e6 * step_ms())] * 9
        assert times[6] - times[5] > 900_000_000
    assert told(capsys, "diagnose", out)["steps"]["count"] == 5 + 8
    assert told(capsys, "compare", out, files[0])["a"]["steps"]["count"] == 5 + 8


def test_trace_run_and_report_have_one_origin(trace, out, tmp_path, capsys):
    direct = told(capsys, "diagnose", trace)
    assert main(["import", trace, "-o", str(out)]) == 0
    capsys.readouterr()
    stored = told(capsys, "diagnose", out)
    assert stored.pop("source") == str(out) and direct.pop("source") == trace
    assert {key: stored[key] for key in direct} == direct
    assert main(["report", str(out)]) == 0
    page = (tmp_path / "out.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "Input-bound" in page and "What the device did" in page and "relu_kernel" in page
    for name, ms in direct["partition_ms"].items():
        assert ms < 0.005 or f"{ms:.2f}" in page, name


def test_without_predictions_the_verdict_is_made_anew_and_not_kept(trace, out, capsys):
    assert main(["import", trace, "-o", str(out)]) == 0
    capsys.readouterr()
    quick = told(capsys, "diagnose", out, "--no-what-if")
    assert quick["what_if"] is None and quick["confidence"] == "low"
    assert told(capsys, "diagnose", out)["what_if"]


def test_ranks_of_a_tar_become_processes(tmp_path, out, capsys):
    with tarfile.open(tmp_path / "job.tar.gz", "w:gz") as tar:
        for rank in range(2):
            file = loop(wait_us=400 if rank else 0, rank=rank).save(tmp_path / f"rank{rank}.json")
            tar.add(file, arcname=file.name)
    assert told(capsys, "import", tmp_path / "job.tar.gz", "-o", out)["processes"] == 2
    with Run.open(out) as run:
        assert [(p.role, p.rank) for p in run.processes] == [("rank", 0), ("rank", 1)]
        assert len(run.devices) == 2 and len(run.find("step.wall")) == 2
    found = told(capsys, "diagnose", out)
    assert found["rank"] == 1 and [r["rank"] for r in found["ranks"]] == [0, 1]


def test_several_files_and_a_folder(tmp_path, out, capsys):
    folder = tmp_path / "traces"
    folder.mkdir()
    files = [loop(rank=rank).save(folder / f"rank{rank}.json") for rank in range(2)]
    assert told(capsys, "import", *files, "-o", out)["processes"] == 2
    assert told(capsys, "import", folder, "-o", out, "--force")["processes"] == 2


@pytest.mark.parametrize(("name", "content", "says"), [
    ("empty.json", b"", "empty.json"), ("page.json", b"<html>nothing here</html>", "page.json"),
    ("none.json", b'{"traceEvents": []}', "no events"), ("text.gz", b"\x1f\x8bno gzip", "text.gz")])
def test_what_is_no_trace_is_told_in_one_line_and_leaves_nothing(tmp_path, out, capsys, name, content, says):
    (tmp_path / name).write_bytes(content)
    assert main(["import", str(tmp_path / name), "-o", str(out)]) == 2
    output, error = capsys.readouterr()
    assert says in error and error.count("\n") == 1 and not output and not out.exists()


def test_arguments_that_cannot_be(trace, out, tmp_path, capsys):
    out.write_bytes(b"mine")
    assert main(["import", trace, "-o", str(out)]) == 2 and out.read_bytes() == b"mine"
    assert main(["import", trace, "-o", str(tmp_path / "none" / "a.stepscope")]) == 2
    assert main(["import", trace, "-o", trace, "--force"]) == 2
    assert main(["import", str(tmp_path / "missing.json"), "-o", str(tmp_path / "b.stepscope")]) == 2
    assert main(["diagnose", trace, str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 5


def test_damage_is_told_and_the_rest_is_used(tmp_path, out, capsys):
    data = loop(wait_us=400).bytes()
    (tmp_path / "cut.json").write_bytes(data[:int(len(data) * 0.9)])
    found = told(capsys, "import", tmp_path / "cut.json", "-o", out)
    assert any("ends early" in note for note in found["notes"]) and found["verdict"] == "input_bound"
    with Run.open(out) as run:
        assert any(event.kind == "import_note" and event.severity == "warning" for event in run.events())


def test_traces_of_a_folder_are_told_by_what_is_in_them(tmp_path, capsys):
    folder = tmp_path / "traces"
    folder.mkdir()
    loop(rank=0).save(folder / "worker0")
    loop(rank=1).save(folder / "worker1.pt.trace")
    (folder / "notes.txt").write_text("no trace")
    (folder / "config.json").write_text('{"lr": 0.1}')
    assert main(["diagnose", str(folder), "--json", "--no-what-if"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    assert not any("config" in note or "notes" in note for note in found["notes"])


def test_a_trace_of_a_folder_that_is_damaged_is_not_passed_over(tmp_path, capsys):
    loop(rank=0).save(tmp_path / "rank0.json")
    (tmp_path / "rank1.json.gz").write_bytes(b"\x1f\x8b nothing more")
    assert main(["diagnose", str(tmp_path), "--json", "--no-what-if"]) == 0
    assert any("rank1.json.gz" in note for note in json.loads(capsys.readouterr().out)["notes"])


def test_a_folder_without_traces(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    assert main(["diagnose", str(tmp_path)]) == 2
    assert "folder without traces" in capsys.readouterr().err


_STOPPED = """
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
from profiler.cli import _imported, main
append = _imported.append_result
def stopped(path, *args):
    assert path.exists()
    append(path, *args)
    os.kill(os.getpid(), int(sys.argv[1]))
_imported.append_result = stopped
sys.exit(main(["import", sys.argv[2], "-o", sys.argv[3], "--force"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_stops_it_leaves_nothing_and_what_was_there_stays(trace, out, number):
    assert main(["import", trace, "-o", str(out)]) == 0
    before = out.read_bytes()
    argv = [sys.executable, "-c", _STOPPED, str(ROOT), str(int(number)), trace, str(out)]
    ended = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert ended.returncode == (130 if number == signal.SIGINT else -number) and not ended.stderr
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.stepscope", "t.json.gz"]
    assert out.read_bytes() == before


@pytest.mark.parametrize(("moved", "usable"), [(10**17, False), (5_600_000_000_000_000, False),
                                               (2_500_000_000_000_000, True), (-EPOCH_US - 5_000_000, True)],
                         ids=["far", "2200", "2100", "negative"])
def test_clocks_that_show_no_time(tmp_path, out, capsys, moved, usable):
    document = loop(wait_us=400).document(times="int")
    for event in document["traceEvents"]:
        event["ts"] += moved
    (tmp_path / "t.json").write_text(json.dumps(document))
    if not usable:
        assert main(["import", str(tmp_path / "t.json"), "-o", str(out)]) == 2
        assert capsys.readouterr().err.count("\n") == 1 and not out.exists()
        return
    assert told(capsys, "import", tmp_path / "t.json", "-o", out)["verdict"] == "input_bound"
    found = told(capsys, "diagnose", out)
    assert found["verdict"] == "input_bound" and abs(found["traces"][0]["base_ns"]) < 1 << 62
    assert main(["report", str(out)]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_can_be_diagnosed_but_not_kept(trace, out, capsys):
    got, to = os.pipe()
    os.write(to, Path(trace).read_bytes())
    os.close(to)
    assert main(["import", f"/dev/fd/{got}", "-o", str(out)]) == 2 and not out.exists()
    assert "no regular file" in capsys.readouterr().err
    assert told(capsys, "diagnose", f"/dev/fd/{got}")["verdict"] == "input_bound"
    os.close(got)
