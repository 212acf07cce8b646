"""Cards, and the slices of those that MIG splits: which of them a process works on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from profiler.model import Device, mapping
from profiler.visible import also_named

if TYPE_CHECKING:
    from profiler.run.reader import Run

# Of a card these hold for each of its slices too; power and the like are the sum of what all of them do.
SHARED = ("gpu.clock_sm", "gpu.clock_mem", "gpu.temperature", "gpu.throttle", "gpu.pcie_gen",
          "gpu.pcie_width")
# Of a slice alone: the card's numbers are those of all its slices together.
OWN = ("gpu.mem_used", "gpu.mem_free", "gpu.mem_reserved", "gpu.sm_active", "gpu.sm_occupancy",
       "gpu.tensor_active", "gpu.dram_active", "gpu.processes", "gpu.other_processes", "gpu.process_mem")
OWN_OF_PART = ("gpu.util", "gpu.mem_util")  # of a part of a split AMD card also these


def card_of(run: Run, device: Device) -> Device:
    """The card that a slice is a part of, or the part that tells what is the whole card's; a card itself."""
    parent = device.properties.get("mig_parent") or device.properties.get("part_of")
    return next((card for card in run.devices if card.uuid == parent), device) if parent else device


def unit_of(run: Run, device: Device) -> Device:
    """What a process on this device works on: a slice where the card is split, for nothing runs beside them.

    The only slice; else one that holds a process of the target, else one that CUDA shows, else the one with
    the highest activity or memory.
    """
    slices = [one for one in run.devices if one.properties.get("mig_parent") == device.uuid]
    if not slices:
        return device

    def weight(one: Device) -> tuple[bool, bool, float, float]:
        ours = any(track.properties.get("whose") == "target"
                   for track in run.find("gpu.process_mem", device=one.id))
        return (ours, bool(one.properties.get("cuda_visible")), _latest(run, "gpu.sm_active", one),
                _latest(run, "gpu.mem_used", one))

    return max(slices, key=weight)


def held(run: Run, process: int | None) -> dict[int, float]:
    """Bytes that torch's allocator of a process has reserved at last, by the device's id."""
    known = {device.id for device in run.devices}
    return {track.device: latest[1] for track in run.find("torch.mem_reserved", process=process)
            if track.device in known and (latest := run.latest(track.id))}


def used_device(run: Run, process: int | None, properties: Mapping[str, Any]) -> Device | None:
    """The device whose allocator the process uses most; else the only one that it sees, or the busiest.

    Of a card that MIG splits the slice: see unit_of.
    """
    devices = {device.id: device for device in run.devices}
    if reserved := held(run, process):
        return devices[max(reserved, key=lambda number: reserved[number])]
    told = {str(uuid) for uuid in mapping(mapping(properties.get("torch")).get("uuid")).values()}
    uuids = told | {f"GPU-{uuid}" for uuid in told}
    named = [d for d in devices.values() if uuids.intersection((d.uuid, *_names(d)))]
    if len(named) == 1:
        return unit_of(run, named[0])
    shown = [d for d in devices.values() if d.properties.get("cuda_visible")]
    if len(shown) == 1:
        return unit_of(run, shown[0])
    busy = {d.id: _mean_use(run, d) for d in devices.values()}
    return unit_of(run, devices[max(busy, key=lambda number: busy[number])]) if busy else None


def _names(device: Device) -> tuple[str, ...]:
    """Other names of the device itself, without that of its card."""
    return also_named(device.uuid, {"also_named": device.properties.get("also_named")})


def _mean_use(run: Run, device: Device) -> float:
    found = [float(values.mean()) for track in run.find("gpu.util", device=device.id)
             if len(values := run.values(track.id)[1])]
    return found[0] if found else 0.0


def _latest(run: Run, metric: str, device: Device) -> float:
    found = [sample[1] for track in run.find(metric, device=device.id) if (sample := run.latest(track.id))]
    return max(found, default=0.0)
