"""The spool: segments, a recorder that lags behind, files that another program left, and forks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.probe.fakes import PROBE

assert PROBE.is_dir()


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from _stepscope_probe import spool as module

    monkeypatch.setattr(module, "SEGMENT_BYTES", 100)
    monkeypatch.setattr(module, "_RECHECK_NS", 0)
    return module.Spool(str(tmp_path))


def segments(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in tmp_path.iterdir())


def test_segments_and_records_that_are_dropped(spool: Any, tmp_path: Path) -> None:
    for i in range(40):
        spool.write(f'["x",{i},"0123456789"]\n')
    assert segments(tmp_path) == [f"{os.getpid()}.{n}.spool" for n in range(4)]
    kept = [json.loads(line)[1] for p in sorted(tmp_path.iterdir()) for line in p.read_text().splitlines()]
    assert kept == list(range(len(kept)))
    (tmp_path / f"{os.getpid()}.0.spool").unlink()  # as the recorder does
    spool.write('["x",40]\n')
    last = (tmp_path / f"{os.getpid()}.4.spool").read_text().splitlines()
    assert [json.loads(line) for line in last] == [["dropped", 40 - len(kept)], ["x", 40]]


def test_a_program_after_exec_does_not_write_into_an_earlier_ones_file(spool: Any, tmp_path: Path) -> None:
    (tmp_path / f"{os.getpid()}.0.spool").write_text("earlier\n")
    spool.write('["x"]\n')
    assert (tmp_path / f"{os.getpid()}.0.spool").read_text() == "earlier\n"
    assert (tmp_path / f"{os.getpid()}.1.spool").read_text() == '["x"]\n'


def test_the_file_is_out_of_the_way(spool: Any) -> None:
    spool.write('["x"]\n')
    assert spool.fd > 200
    assert not os.get_inheritable(spool.fd)
    os.close(spool.fd)
    spool.write('["y"]\n')  # somebody closed it: given up, not told
    assert spool.dead
    spool.write('["z"]\n')
