"""From AMD SMI to the run file, its report and its diagnosis: one recording of a loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiler.paths import own_command
from profiler.run.reader import Run
from profiler.sources._amd_fields import RESIDENCIES
from profiler.sources._amd_gpu import torch_uuid
from profiler.sources._amd_library import has_nvidia
from tests.fakes import amdsmi_plan
from tests.sources.test_nvml_run import values

pytestmark = pytest.mark.skipif(has_nvidia(), reason="this machine has another GPU to tell of")

HIP = "GPU-4b2c1a9f8d3e6f71"  # of the second card
PLAN = {"values": {"gfx_activity:1": 91, "energy_accumulator": 2_000_000, "counter_resolution": 0.5,
                   "processes:0": [[os.getpid(), 4096]], "pcie_width": 8,
                   "indep_throttle_status": 1 << 36, **dict.fromkeys(RESIDENCIES, "N/A")}}
PLANNED = {
    "gpu.util": 0.37, "gpu.mem_util": 0.12, "gpu.mem_used": 20 << 30, "gpu.power": 412, "gpu.energy": 1.0,
    "gpu.temperature": 61, "gpu.clock_sm": 2100, "gpu.clock_mem": 1300, "gpu.throttle": 0x20,
    "gpu.pcie_gen": 5, "gpu.pcie_both": 1e9, "gpu.nvlinks": 7, "gpu.ecc_corrected": 3,
    "gpu.process_mem": 4096,
}  # fmt: skip
# What a probe writes of a loop on the second card, until the slow source has been read often enough.
LOOP = """
import json, os, sys, time
here, path, uuid = sys.argv[1:]
sys.path.insert(0, here)
from profiler.run.reader import Run
run = Run.open(path)
pid, spool = os.getpid(), os.environ["STEPSCOPE_SPOOL"]
file = open(f"{spool}/{pid}.0.spool", "a", buffering=1)
say = lambda *record: file.write(json.dumps(record) + "\\n")
t0, index, end = time.monotonic_ns(), 0, time.monotonic() + 60
say("hello", {"version": 1, "pid": pid, "ppid": 1, "t": t0, "python": "3.11", "argv": ["train.py"],
              "rank": None, "world": None})
say("torch", {"version": "2.9.0+rocm6.4", "cuda": None, "hip": "6.4", "device_count": 1, "uuid": {"0": uuid}})
def enough():
    run.refresh()
    return all(len(run.values(t.id)[1]) > 2 for t in run.find("gpu.throttle")) and run.find("gpu.nvlink_rx")
while time.monotonic() < end and not (index >= 30 and enough()):
    time.sleep(0.04)
    t1 = time.monotonic_ns()
    say("step", index, t0, t1, 1_000_000, 200_000, 30_000_000, 4_000_000, 500_000, 7, 8, 32, 1, 0, 0, 0)
    say("memory", t1, 0, 1 << 30, 2 << 30, 1 << 30, 0, 0, 0, 1)
    t0, index = t1, index + 1
say("bye", {})
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("amd")
    path = folder / "run.stepscope"
    here = str(Path(__file__).resolve().parents[2])
    loop = [sys.executable, "-c", LOOP, here, str(path), torch_uuid(HIP)]
    command = own_command("record", "--json", "-o", str(path), "--", *loop)
    env = {**amdsmi_plan.environment(folder / "plan.json", PLAN), "HIP_VISIBLE_DEVICES": "1"}
    done = subprocess.run(command, env=env, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "finished"
    return path


def test_run_file_carries_exactly_the_planned_values(recorded: Path) -> None:
    run = Run.open(recorded)
    try:
        gpu = run.meta["gpu"]
        assert gpu == run.meta["amd"]
        assert (gpu["state"], gpu["vendor"], gpu["driver"]) == ("ok", "AMD", "6.14.14")
        assert [d.name for d in run.devices] == ["AMD Stand-in MI300X"] * 2
        assert {d.properties["vendor"] for d in run.devices} == {"AMD"}
        for metric, value in PLANNED.items():
            assert values(run, metric, 0) == {value}, metric
        assert values(run, "gpu.util", 1) == {0.91}
        absent = [e.text for e in run.events() if e.kind in ("source_off", "field_absent", "device_absent")]
        assert absent == []
        assert run.meta["overhead"]["sources"].keys() >= {"amd", "amd_slow"}
        assert "nvml" not in run.meta["overhead"]["sources"]
    finally:
        run.close()


def test_which_card_the_program_sees_is_kept(recorded: Path) -> None:
    run = Run.open(recorded)
    try:
        assert run.meta["environment"]["HIP_VISIBLE_DEVICES"] == "1"
        hidden, seen = (device.properties for device in run.devices)
        assert hidden["cuda_visible"] is False and "cuda_index" not in hidden
        assert (seen["cuda_visible"], seen["cuda_index"]) == (True, 0)
    finally:
        run.close()


def test_what_torch_reserves_is_of_the_device_that_it_means(recorded: Path) -> None:
    run = Run.open(recorded)
    try:
        second = run.devices[1]
        assert second.properties["hip_uuid"] == HIP
        assert [t.device for t in run.find("torch.mem_reserved")] == [second.id]
    finally:
        run.close()


def test_the_diagnosis_is_of_that_device_in_the_words_of_its_vendor(recorded: Path) -> None:
    told = subprocess.run(own_command("diagnose", "--json", str(recorded)), capture_output=True, text=True)
    said: dict[str, Any] = json.loads(told.stdout)
    assert said["device"]["name"] == "AMD Stand-in MI300X", told.stderr
    throttling = next(f for f in said["findings"] if f["rule"] == "throttling")
    assert {e["source"] for e in throttling["evidence"]} <= {"AMD SMI", "probe, AMD SMI"}
    for word in ("NVML", "NVIDIA", "nvidia", "SM clock", "CUDA events"):
        assert word not in told.stdout, word


def test_the_report_names_amds_versions(recorded: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    subprocess.run(own_command("report", str(recorded), "-o", str(page)), capture_output=True, check=True)
    said = page.read_text()
    assert "AMD Stand-in MI300X" in said and "amdsmi" in said and "torch's ROCm" in said.replace("&#39;", "'")
    assert "NVML" not in said and "NVIDIA" not in said
