"""The spool: segments, a recorder that lags behind, files that another program left, and forks."""

from __future__ import annotations

import errno
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


def test_a_program_that_closes_all_its_files_loses_no_record(spool: Any, tmp_path: Path) -> None:
    """And where it has since opened its own under our number, nothing of ours goes into that."""
    spool.write('["x"]\n')
    number = spool.fd
    os.close(number)
    spool.write('["y"]\n')
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ['["x"]\n', '["y"]\n']
    os.close(spool.fd)
    own = tmp_path.parent / f"{tmp_path.name}.own"
    with own.open("w") as file:
        os.dup2(file.fileno(), number)
        spool.write('["z"]\n')
        spool.give_up()
        os.fstat(number)  # theirs is open still
        os.close(number)
    assert own.read_text() == ""
    assert (tmp_path / f"{os.getpid()}.2.spool").read_text() == '["z"]\n'


def test_a_spool_whose_folder_is_gone_is_given_up(spool: Any, tmp_path: Path) -> None:
    spool.write('["x"]\n')
    os.close(spool.fd)
    (tmp_path / f"{os.getpid()}.0.spool").unlink()
    tmp_path.rmdir()
    spool.write('["y"]\n')
    assert spool.dead
    spool.write('["z"]\n')
    tmp_path.mkdir()


def test_a_full_disk_is_waited_for_and_what_it_cost_is_told(spool: Any, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder deletes what it has read only once another segment follows: that makes room again."""
    room = [30]

    def limited(fd: int, data: bytes, write: Any = os.write) -> int:
        done = min(room[0], len(data))
        if not done:
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= done
        return int(write(fd, data[:done]))

    monkeypatch.setattr("_stepscope_probe.spool.os.write", limited)
    for i in range(6):  # 12 bytes each: two and a half fit
        spool.write(f'["x",{i},"0"]\n')
    assert not spool.dead and spool.dropped == 4
    room[0] = 1000
    for path in tmp_path.iterdir():  # as the recorder does
        path.unlink()
    spool.write('["x",6,"0"]\n')
    spool.write('["x",7,"0"]\n')
    (last,) = tmp_path.iterdir()
    assert [json.loads(line) for line in last.read_text().splitlines()] == [
        ["dropped", 4], ["x", 6, "0"], ["x", 7, "0"]]
    assert spool.dropped == 0
