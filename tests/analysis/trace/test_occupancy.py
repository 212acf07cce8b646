"""What a launch configuration can fill of a GPU."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

from profiler.analysis.trace.code.grouping import weighted_mean
from profiler.analysis.trace.code.owners import durations
from profiler.analysis.trace.device import occupancy
from profiler.trace.model import Kind
from tests.reference import TRACES, expected, needs_reference, trace
from tests.traces import Timeline

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0,
        "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "regsPerMultiprocessor": 65536,
        "warpSize": 32, "sharedMemPerMultiprocessor": 167936, "numSms": 108}
MI250 = {"id": 0, "name": "", "computeMajor": 9, "computeMinor": 0, "warpSize": 64, "numSms": 104,
         "maxSharedMemoryPerMultiProcessor": 65536, "regsPerBlock": 65536}


def fit(properties: dict[str, Any], block: int, registers: int, shared: int) -> int:
    limits = occupancy.limits(properties)
    assert limits is not None
    return int(occupancy.blocks_at_once(
        limits, *(np.array([v], np.int32) for v in (block, registers, shared)))[0])


@pytest.mark.parametrize("block, registers, shared, blocks", [
    (128, 32, 0, 16),         # warps: 64 over 4
    (32, 16, 0, 32),          # blocks: as many as there can be
    (256, 128, 0, 2),         # registers: 16 warps of 4096
    (256, 33, 0, 6),          # registers come to a warp in units of 256: 1280 each, 48 warps of 8
    (128, 32, 40 * 1024, 4),  # shared memory: 164 KiB over 41, with what the system takes
    (128, 32, 163 * 1024, 1),
    (128, 32, 164 * 1024, 0),  # with the system's share it fits no more
    (33, 32, 0, 32),          # two warps, of which one has a single thread
    (1024, 72, 0, 0),         # more registers than a block may have
    (0, 32, 0, 0), (128, 0, 0, 0), (128, -1, 0, 0), (128, 32, -1, 0)])
def test_blocks_that_fit_an_a100(block: int, registers: int, shared: int, blocks: int) -> None:
    assert fit(A100, block, registers, shared) == blocks


@pytest.mark.parametrize("capability, block, shared, blocks", [
    ((7, 5), 32, 0, 16), ((8, 6), 32, 0, 16), ((8, 9), 32, 0, 24), ((8, 9), 64, 0, 24), ((9, 0), 32, 0, 32),
    ((7, 0), 64, 48 * 1024, 2), ((8, 6), 64, 48 * 1024, 2), ((9, 0), 64, 48 * 1024, 4), ((12, 0), 64, 0, 24)])
def test_limits_by_capability(capability: tuple[int, int], block: int, shared: int, blocks: int) -> None:
    properties = {"computeMajor": capability[0], "computeMinor": capability[1]}
    assert fit(properties, block, 16, shared) == blocks


@pytest.mark.parametrize("properties", [
    {}, MI250, {"name": "AMD Radeon Graphics", "computeMajor": 9, "computeMinor": 0, "numSms": 104},
    {"computeMajor": 99, "computeMinor": 0}, {"computeMajor": "8", "computeMinor": 0}])
def test_what_is_not_known_has_no_limits(properties: dict[str, Any]) -> None:
    assert occupancy.limits(properties) is None


def test_odd_values_of_a_file_are_taken_as_missing() -> None:
    odd = {**A100, "regsPerMultiprocessor": float("nan"), "maxThreadsPerMultiprocessor": "2048",
           "sharedMemPerMultiprocessor": -1, "regsPerBlock": 0}
    assert occupancy.limits(odd) == occupancy.limits(A100)
    assert occupancy.multiprocessors({"numSms": True}) is None


def of_one_kernel(*properties: dict[str, Any], device: int = 0, grid: int = 54,
                  **args: Any) -> tuple[float, float]:
    args = {"grid": [grid, 1, 1], "block": [128, 1, 1], "registers": 32, "shared": 0, **args}
    made = Timeline(deviceProperties=list(properties)).kernel("k", 0, 1000, 1, device=device, **args).trace()
    return float(occupancy.sm_efficiency(made)[0]), float(occupancy.occupancy(made)[0])


def test_of_a_small_and_a_large_grid() -> None:
    assert of_one_kernel(A100) == (0.5, 0.03125)  # half a block of 4 warps on each of 108, of 64 warps
    assert of_one_kernel(A100, grid=100_000) == (1.0, 1.0)
    assert of_one_kernel(A100, grid=100_000, shared=96 * 1024) == (1.0, 0.0625)  # Kineto has 0 here


def test_what_is_missing_is_not_a_number() -> None:
    assert np.isnan(of_one_kernel()).all()
    assert np.isnan(of_one_kernel(A100, grid=0)).all()
    efficiency, filled = of_one_kernel(A100, registers=-1)
    assert efficiency == 0.5 and np.isnan(filled)
    efficiency, filled = of_one_kernel(MI250)
    assert efficiency == 54 / 104 and np.isnan(filled)


def test_a_device_without_properties_is_like_the_others_when_all_are_of_one_kind() -> None:
    assert of_one_kernel(A100, {**A100, "id": 1}, device=5) == (0.5, 0.03125)
    assert np.isnan(of_one_kernel(A100, {**MI250, "id": 1}, device=5)).all()


LARGE = 47 * 1024  # bytes: with what the system takes more than the 48 KiB that Kineto reckons with
FILES = ["v100_resnet50_workers0", "h100_owlv2", "h100_timesformer", "h100_bert_small", "a100_nccl_rank0of2",
         "a100_alexnet_cuda_sync", "gpu_user_annotation", "v100_float_epoch_us"]


@needs_reference
@pytest.mark.parametrize("name", FILES)
def test_every_kernel_that_kineto_has_right_agrees(name: str) -> None:
    """It writes whole percents, and 0 above 48 KiB of shared memory."""
    document = json.loads(gzip.decompress((TRACES / f"{name}.json.gz").read_bytes()))
    known = {p["id"]: p for p in document["deviceProperties"]}
    every = [e["args"] for e in document["traceEvents"] if str(e.get("cat")).lower() == "kernel"]
    columns = {(a["device"], int(np.prod(a["grid"])), int(np.prod(a["block"])), a["registers per thread"],
                a["shared memory"]): a["est. achieved occupancy %"] for a in every}
    assert columns
    for (device, grid, block, registers, shared), percent in columns.items():
        blocks = fit(known[device], block, registers, shared)
        assert blocks > 0
        warps = known[device]["maxThreadsPerMultiprocessor"] // 32
        ours = min(grid / known[device]["numSms"], blocks) * -(-block // 32) / warps * 100
        assert abs(ours - percent) <= 0.51 or (percent == 0 and shared > LARGE)


@needs_reference
@pytest.mark.parametrize("name", FILES)
def test_the_mean_is_kinetos_where_none_of_its_values_is_missing(name: str) -> None:
    theirs = expected()[f"{name}.json.gz"]["reference"]["occupancy"]
    made = trace(f"{name}.json.gz")
    time = durations(made.device.start, made.device.end) * (made.device.kind == Kind.KERNEL)
    ours = weighted_mean(occupancy.occupancy(made), time)
    assert ours is not None
    # Its zeros (large shared memory, and less than half a percent) only lower the mean.
    lost = theirs["share_of_kernel_time_reported_as_0_pct"]
    assert theirs["dur_weighted_mean_pct"] - 0.5 <= ours * 100 <= theirs["dur_weighted_mean_pct"] + 0.5 + lost
