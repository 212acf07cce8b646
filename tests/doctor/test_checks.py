from __future__ import annotations

from pathlib import Path

import pytest

from profiler import doctor
from profiler.doctor import gpu, machine, places, software
from profiler.doctor.base import STATES


def test_every_row_is_whole() -> None:
    rows = doctor.checks()
    assert {row.state for row in rows} <= set(STATES)
    assert all(row.name and row.text for row in rows)
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.hint for row in rows if row.state == "error")


def test_a_check_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(machine, "affinity", fail)
    rows = doctor.checks()
    broken = [row for row in rows if row.name == "Machine"]
    assert [row.state for row in broken] == ["error"]
    assert "no luck" in broken[0].text
    assert any(row.name == "Runs folder" for row in rows)  # the others went on


def test_device_names_who_else_uses_it() -> None:
    device = {"name": "NVIDIA H200", "index": 0, "memory_total": 140 << 30, "mig": False, "users": []}
    check = gpu.device_check("GPU", device, "570.86")
    assert (check.state, check.text) == ("ok", "NVIDIA H200, 140.0\u00a0GiB, driver 570.86")
    busy = gpu.device_check("GPU", device | {"users": [(7, "python", 1 << 30), (8, "", None)]}, None)
    assert busy.state == "warning"
    assert "python (pid 7, 1.0\u00a0GiB)" in busy.text
    assert "a process (pid 8)" in busy.text


def test_no_gpu_says_why() -> None:
    row, = [r for r in gpu.rows({"state": "absent", "reason": "no library", "hint": "install", "devices": []})
            if r.name == "GPU"]
    assert (row.state, row.text, row.hint) == ("absent", "no library", "install")


@pytest.mark.parametrize(("line", "root", "state"), [
    ("RmProfilingAdminOnly: 1", False, "warning"), ("RmProfilingAdminOnly: 1", True, "ok"),
    ("RmProfilingAdminOnly: 0", False, "ok"), ("Other: 1", False, "absent")])
def test_permission(line: str, root: bool, state: str) -> None:
    assert gpu.permission_check(f"A: 2\n{line}\n", root).state == state


def torch_folder(path: Path, cuda: str | None, hip: str | None = None) -> Path:
    path.mkdir()
    (path / "version.py").write_text("from typing import Optional\n__version__ = '2.9.0'\n"
                                     f"cuda: Optional[str] = {cuda!r}\nhip = {hip!r}\n")
    return path


@pytest.mark.parametrize(("cuda", "has_gpu", "driver", "state"), [
    (None, False, None, "ok"), (None, True, "12.8", "warning"), ("12.8", True, "12.4", "ok"),
    ("13.0", True, "12.8", "error"), ("13.0", False, None, "ok")])
def test_torch_build_and_driver(tmp_path: Path, cuda: str | None, has_gpu: bool, driver: str | None,
                                state: str) -> None:
    check = software.torch_check(torch_folder(tmp_path / "torch", cuda), None, has_gpu, driver)
    assert check.state == state
    assert check.text.startswith("2.9.0")


def test_no_torch_and_a_strange_one(tmp_path: Path) -> None:
    assert software.torch_check(None, None, False, None).state == "absent"
    (tmp_path / "version.py").write_text("not python at all (")
    assert software.torch_check(tmp_path, "2.9.0", False, None).text.startswith("2.9.0")


@pytest.mark.parametrize(("qt", "graph", "state"), [
    ("6.11.3", "0.14", "ok"), ("6.12.0", "0.14", "error"), (None, "0.14", "absent"), ("6.8", None, "absent")])
def test_window(qt: str | None, graph: str | None, state: str) -> None:
    assert software.window_check(qt, graph).state == state


def test_cores_and_memory() -> None:
    assert machine.cores_check(8, 8, None).state == "ok"
    assert machine.cores_check(8, 8, 2.0).state == "warning"
    assert machine.cores_check(8, 1, None).state == "warning"
    assert machine.memory_check(16 << 30, 8 << 30, None).state == "ok"
    assert machine.memory_check(16 << 30, 8 << 30, (1 << 30, None)).state == "warning"
    assert machine.memory_check(16 << 30, 8 << 30, (8 << 30, 2 << 30)).state == "ok"
    assert machine.memory_check(16 << 30, 8 << 30, (8 << 30, 7 << 30)).state == "warning"
    assert machine.memory_check(16 << 30, 8 << 30, (64 << 30, 40 << 30)) == machine.memory_check(
        16 << 30, 8 << 30, None)


def test_container_display_governor(tmp_path: Path) -> None:
    assert "none" in machine.container_check(None, False, True).text
    assert machine.container_check("Docker", True, False).text == "Docker: cores or memory are limited"
    assert "--pid=host" in machine.container_check("Docker", False, True).hint
    assert machine.display_check({}, "linux").state == "absent"
    assert machine.display_check({"DISPLAY": ":1"}, "linux").state == "ok"
    assert machine.governor_check("powersave").state == "warning"
    assert machine.governor_check(None).state == "absent"


@pytest.mark.parametrize(("kind", "words"), [("wsl", "driver is that of Windows"), ("jetson", "tegrastats")])
def test_platforms_have_advice_that_fits(kind: str, words: str) -> None:
    check = machine.platform_check((kind, "a name"))
    assert check.text.startswith("a name") and words in check.hint
    assert machine.platform_check(None).hint == ""


def test_places(tmp_path: Path) -> None:
    assert places.shm_check(64 << 20, 64 << 20).state == "warning"
    assert places.folder_check("Runs folder", tmp_path, 10**12, True, "X").state == "ok"
    assert places.folder_check("Runs folder", tmp_path, 10**9, True, "X").state == "warning"
    assert places.folder_check("Runs folder", tmp_path, 10**7, True, "X").state == "error"
    assert "STEPSCOPE_RUNS" in places.folder_check("Runs", tmp_path, 10**12, False, "STEPSCOPE_RUNS").hint
    assert places.existing(tmp_path / "a" / "b") == tmp_path
    assert places.file_system_check("nfs4").state == "warning"
    assert places.file_system_check("ext4").state == "ok"


@pytest.mark.parametrize(("named", "seen"), [
    (None, [0, 1]), ("", []), ("-1", []), ("1", [1]), ("1, 0", [1, 0]), ("0,7,1", [0]), ("GPU-bb", [1]),
    ("GPU-", []),
])
def test_gpus_that_cuda_visible_devices_leaves(named: str | None, seen: list[int]) -> None:
    devices = [{"index": 0, "uuid": "GPU-aa12"}, {"index": 1, "uuid": "GPU-bb34"}]
    assert [d["index"] for d in software.visible(devices, named)] == seen


def test_gpus_are_those_that_torch_can_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [{"name": "Planned GPU", "index": 0, "uuid": "GPU-1", "compute_capability": "7.5"}]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(software, "package_folder", lambda name: tmp_path)
    for text, gpus in (
        ("cuda = '12.8'\nhip = None", [{"name": "Planned GPU", "compute_capability": 7.5}]),
        ("cuda = None\nhip = None", []),
        ("cuda = None\nhip = '6.4'", None),
    ):
        (tmp_path / "version.py").write_text(f"__version__ = '2.14'\n{text}\n")
        assert software.usable_gpus(devices) == gpus
