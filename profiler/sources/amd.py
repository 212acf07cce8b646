"""AMD GPUs through AMD SMI: utilization, memory, power, energy, temperature, clocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from profiler.errors import DeviceError
from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._amd_fields import OF_CARD, OF_PART, energy
from profiler.sources._amd_gpu import AmdGpu, names_of
from profiler.sources._amd_health import users
from profiler.sources._amd_library import NO_DEVICES, NO_GPU, AmdLibrary, alone, has_hardware, named
from profiler.sources._amd_visible import HipCard, resolve
from profiler.sources._find import Found, find_gpus
from profiler.sources._gpu import text_of
from profiler.sources._library import GOOD, absent
from profiler.sources._readings import Reading, readings
from profiler.sources._relay import Relay
from profiler.sources._vendor import FastSource, add_devices, tell_shown

PATIENCE_S = 0.02  # for one call: several read a table of the card's that takes some ms


class AmdSource(FastSource):
    """All AMD GPUs, every field on its own. AMD SMI is loaded in `open`, not before.

    `also_named` of a device's properties has its names in HIP and torch. The run's meta `amd` tells
    {state: ok | absent, cause, reason, hint, vendor, driver, amdsmi}; `gpu` does too where AMD's are
    the only GPUs. Where an NVIDIA GPU does the work, and no AMD GPU can be asked, nothing is said.
    """

    name = "amd"
    library: AmdLibrary
    gpus: Sequence[AmdGpu]

    def __init__(self) -> None:
        super().__init__(AmdLibrary())

    def open(self, sink: Sink, clock: Clock) -> None:
        """Add the devices. DeviceError where there is an AMD GPU that cannot be asked, with what to do."""
        found, wrong = find(self.library)
        self._hung = found.hung
        if wrong is not None:
            self._leave()
            self._absent(wrong, sink)
            return
        gpus = [gpu for gpu in found.gpus if isinstance(gpu, AmdGpu)]
        good = {**GOOD, **versions(self.library, gpus)}
        for key in ("amd", "gpu") if alone() else ("amd",):
            sink.set_meta(key, good)
        for text in found.failures:
            sink.event(clock.now_ns(), "device_absent", "warning", text)
        tell_visible(gpus)
        tell_parts(gpus)
        names = names_of(gpus)
        for gpu in gpus:
            gpu.properties["also_named"] = sorted(n for n, of in names.items() if of is gpu and n != gpu.uuid)
        add_devices(gpus, sink)
        self.gpus = gpus
        cards = [gpu for gpu in gpus if not gpu.part]
        self._relay = Relay([*readings(gpus, OF_PART), *readings(cards, OF_CARD),
                             *(Reading(gpu, energy()) for gpu in cards)], PATIENCE_S)
        self.opened.set()

    def read(self, sink: Sink, clock: Clock) -> None:
        for gpu in self.gpus:
            gpu.handle.turn += 1
        super().read(sink, clock)

    def _absent(self, wrong: tuple[str, str, str], sink: Sink) -> None:
        only = alone()
        if not only and (not has_hardware() or wrong[0] == "no_binding"):
            return  # its NVIDIA GPU does the work
        wrong = wrong if has_hardware() else NO_GPU
        for key in ("amd", "gpu") if only else ("amd",):
            sink.set_meta(key, absent(*wrong))
        raise DeviceError(*wrong[1:])


def find(library: AmdLibrary) -> tuple[Found, tuple[str, str, str] | None]:
    """The GPUs of the library, started; or (cause, reason, hint) of why there is none. Never raises."""
    wrong = library.start()
    if wrong is not None:
        return Found(), wrong
    found = find_gpus(library, AmdGpu, "AMD")
    return found, found.wrong(NO_DEVICES)


def tell_parts(gpus: Sequence[AmdGpu]) -> None:
    """Put the UUID of its card's first part, which tells what is the whole card's, into each other part."""
    first = {_bus(gpu): gpu.uuid for gpu in gpus if not gpu.part}
    for gpu in gpus:
        if gpu.part and (uuid := first.get(_bus(gpu))) is not None:
            gpu.properties["part_of"] = uuid


def _bus(gpu: AmdGpu) -> str:
    """Its place on the bus without the function, by which parts of a card differ."""
    return str(gpu.properties.get("pci_bus_id") or gpu.uuid).partition(".")[0]


def tell_visible(gpus: Sequence[AmdGpu]) -> None:
    """Put torch's number of each device that HIP shows into its properties; of others that it does not."""
    cards = [HipCard(gpu.uuid, str(gpu.properties.get("hip_uuid") or ""), gpu.properties.get("hip_id"))
             for gpu in gpus]
    tell_shown(gpus, resolve(cards, os.environ))


def versions(library: AmdLibrary, gpus: Sequence[AmdGpu]) -> dict[str, str | None]:
    """Versions of the driver and of AMD SMI."""
    smi = library.nvml.smi
    driver = text_of(lambda: gpus[0].handle("amdsmi_get_gpu_driver_info")["driver_version"])
    return {"vendor": "AMD", "driver": named(driver),
            "amdsmi": str(getattr(smi, "__version__", "")) or None}  # fmt: skip


def describe() -> dict[str, Any]:
    """What AMD SMI tells of this machine now: the meta `amd` with `devices` added. Never raises.

    `hardware`: whether the machine shows an AMD GPU by itself. Each device has `users` too: see
    _amd_health.users.
    """
    library = AmdLibrary()
    found, wrong = find(library)
    try:
        if wrong is not None:
            return {**absent(*wrong), "devices": [], "hardware": has_hardware()}
        gpus = [gpu for gpu in found.gpus if isinstance(gpu, AmdGpu)]
        devices = [{"uuid": g.uuid, "index": g.index, "name": g.name, "memory_total": g.memory_total,
                    **g.properties, "users": users(g)} for g in gpus]  # fmt: skip
        return {**GOOD, **versions(library, gpus), "devices": devices,
                "failures": found.failures, "hardware": True}
    finally:
        if not found.hung:
            library.leave()
