"""What control groups leave of a machine, and which kind of machine it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.run_facts import RunFacts, read_facts, texts
from profiler.machine import container, cpu_quota, memory_limit, platform
from profiler.record import metadata
from profiler.report.devices import machine as machine_rows
from profiler.run.reader import Run
from tests.runs import make_run, run_meta

GIB = 1 << 30


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_limits_of_version_2_are_the_tightest_of_all_groups_around(tmp_path: Path) -> None:
    put(tmp_path, **{"job/inner/cpu.max": "max 100000", "job/cpu.max": "150000 100000",
                     "job/memory.max": str(8 * GIB), "job/memory.current": str(7 * GIB),
                     "job/memory.stat": f"anon 5\ninactive_file {3 * GIB}", "job/inner/memory.max": "max"})
    assert cpu_quota(tmp_path, "0::/job/inner\n") == 1.5
    assert memory_limit(tmp_path, "0::/job/inner\n") == (8 * GIB, 4 * GIB)
    assert (cpu_quota(tmp_path, "0::/elsewhere\n"), memory_limit(tmp_path, "0::/elsewhere\n")) == (None, None)


def test_limits_of_version_2_inside_a_container_stand_at_the_root(tmp_path: Path) -> None:
    put(tmp_path, **{"cpu.max": "200000 100000", "memory.max": str(4 * GIB)})
    assert cpu_quota(tmp_path, "0::/\n") == 2.0 and memory_limit(tmp_path, "0::/\n") == (4 * GIB, None)


@pytest.mark.parametrize("names", ["cpu,cpuacct", "cpuacct,cpu", "cpu"])
def test_limits_of_version_1(tmp_path: Path, names: str) -> None:
    put(tmp_path, **{f"{names}/job/cpu.cfs_quota_us": "200000", f"{names}/job/cpu.cfs_period_us": "100000",
                     "memory/job/memory.limit_in_bytes": str(2 * GIB),
                     "memory/job/memory.usage_in_bytes": str(GIB),
                     "memory/memory.limit_in_bytes": "9223372036854771712",
                     "memory/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}"})
    own = f"4:{names}:/job\n3:memory:/job\n0::/\n"
    assert cpu_quota(tmp_path, own) == 2.0
    assert memory_limit(tmp_path, own) == (2 * GIB, GIB // 2)
    put(tmp_path, **{f"{names}/job/cpu.cfs_quota_us": "-1",
                     "memory/job/memory.limit_in_bytes": "9223372036854771712"})
    assert cpu_quota(tmp_path, own) is None and memory_limit(tmp_path, own) is None


def test_limits_of_version_1_in_a_container_that_reads_the_hosts_path(tmp_path: Path) -> None:
    put(tmp_path, **{"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000",
                     "memory/memory.limit_in_bytes": str(GIB)})
    own = "4:cpu,cpuacct:/docker/0123\n3:memory:/docker/0123\n"
    assert cpu_quota(tmp_path, own) == 1.5 and memory_limit(tmp_path, own) == (GIB, None)


@pytest.mark.parametrize(("files", "env", "name"), [
    ({}, {}, None), ({".dockerenv": ""}, {}, "Docker"), ({"run/.containerenv": ""}, {}, "Podman"),
    ({"proc/self/cgroup": "3:memory:/kubepods/pod1/2"}, {}, "Kubernetes"),
    ({"proc/self/cgroup": "0::/system.slice/docker-12.scope", ".dockerenv": ""}, {}, "Docker"),
    ({"proc/self/cgroup": "0::/user.slice/user-0.slice"}, {}, None),
    ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "Apptainer"),
    ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
])
def test_n16_containers_are_told_by_their_marks(
    tmp_path: Path, files: dict[str, str], env: dict[str, str], name: str | None
) -> None:
    put(tmp_path, **files)
    assert container(tmp_path, env) == name


@pytest.mark.parametrize(("files", "told"), [
    ({}, None), ({"proc/version": "Linux version 6.1.0-18-amd64"}, None),
    ({"proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x)"}, ("wsl", "WSL 2")),
    ({"proc/version": "Linux version 4.4.0-19041-Microsoft"}, ("wsl", "WSL 1")),
    ({"etc/nv_tegra_release": "# R36 (release), REVISION: 3.0, GCID: 1, BOARD: generic"},
     ("jetson", "Jetson, Linux for Tegra R36.3.0")),
    ({"proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0"},
     ("jetson", "NVIDIA Jetson AGX Orin Developer Kit")),
    ({"proc/device-tree/model": "Raspberry Pi 5"}, None),
])
def test_n15_platforms_on_which_the_driver_tells_less(
    tmp_path: Path, files: dict[str, str], told: tuple[str, str] | None
) -> None:
    put(tmp_path, **files)
    assert platform(tmp_path) == told


def test_a_run_says_what_a_container_leaves_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "cpu_quota", lambda: 2.5)
    monkeypatch.setattr(metadata, "memory_limit", lambda: (GIB, None))
    monkeypatch.setattr(metadata, "container", lambda: "Docker")
    monkeypatch.setattr(metadata, "odd_platform", lambda: ("wsl", "WSL 2"))
    told = {**metadata.machine(), "cores": 16, "cores_usable": 16, "memory_bytes": 64 * GIB}
    path = make_run(tmp_path / "a.stepscope", meta={**run_meta(), "machine": told})
    with Run.open(path) as run:
        rows = dict(machine_rows(run))
        facts: RunFacts = read_facts(run)
    assert rows["cores"] == "16 usable of 16, limited to the time of 2.5"
    assert rows["memory"].replace("\N{NO-BREAK SPACE}", " ") == "64.0 GiB, limited to 1.0 GiB"
    assert rows["container"] == "Docker"
    assert rows["system"].endswith("WSL 2")
    assert texts(facts)["device"].replace("\N{NO-BREAK SPACE}", " ") == "2 cores, 1.0 GiB, no GPU"
