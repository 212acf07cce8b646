from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from profiler.cli import main
from tests.runs import make_run


def test_beside_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_run(tmp_path / "a run.stepscope")
    assert main(["report", str(path)]) == 0
    target = tmp_path / "a run.html"
    assert capsys.readouterr().out.strip() == str(target)
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_to_a_file_and_to_a_folder(tmp_path: Path) -> None:
    paths = [str(make_run(tmp_path / f"{name}.stepscope")) for name in "ab"]
    assert main(["report", paths[0], "-o", str(tmp_path / "x.html")]) == 0
    (tmp_path / "out").mkdir()
    assert main(["report", *paths, "-o", str(tmp_path / "out")]) == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.html", "b.html"]
    assert (tmp_path / "x.html").exists()


@pytest.mark.parametrize(("args", "words"), [
    (["a.stepscope", "--format", "pdf"], "html"), (["no.stepscope"], "no.stepscope"),
    (["a.stepscope", "-o", "no/where.html"], "does not exist"),
    (["a.stepscope", "-o", "a.stepscope"], "the run itself"),
    (["a.stepscope", "a.stepscope", "-o", "x.html"], "folder"), (["text.txt"], "not a run file")])
def test_unusable_arguments_are_one_line(
    tmp_path: Path, args: list[str], words: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "a.stepscope")
    (tmp_path / "text.txt").write_text("no run\n" * 200)
    assert main(["report", *args]) == 2
    err = capsys.readouterr().err
    assert words in err and len(err.strip().splitlines()) == 1


def test_without_the_template_engine(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope")
    code = ("import sys; sys.modules['jinja2'] = None\nfrom profiler.cli import main\n"
            f"sys.exit(main(['report', {str(path)!r}]))")
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True,
                          text=True)
    assert done.returncode == 2
    assert "pip install jinja2" in done.stderr and len(done.stderr.strip().splitlines()) == 1
