"""Which device a process works on; of a card that MIG splits it is the slice (N09)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.facts import Facts, gather
from profiler.analysis.steps import training_process
from profiler.rules.recording import pcie_slot, throttling
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import MS, make_run

GIB = 1 << 30
CARD, OTHER = "GPU-cccccccc-0000", "GPU-dddddddd-0000"
SLICES = ("MIG-aaaaaaaa-1111", "MIG-bbbbbbbb-2222")
PARENT = {"mig_parent": CARD, "parent_only": ["gpu.util", "gpu.power"], "compute_instance": 0}


def split(path: Path, *, told: str | None = None, visible: int | None = 0, ours: int | None = None,
          allocator: int | None = None, other: bool = True) -> Path:
    """A run on a card with two slices, beside a card without any.

    `told`: the UUID that torch has from CUDA. `visible`: the slice that CUDA_VISIBLE_DEVICES leaves, None
    where that was not told. `ours`: the slice whose list holds the target. `allocator`: the slice under
    which torch's memory was recorded.
    """
    def put(writer: RunWriter, start: int) -> None:
        card = writer.add_device(CARD, 1, "A100", memory_total=80 * GIB,
                                 properties={"pcie_gen": 4, "pcie_width": 16, "max_clock_sm": 1410})
        of_card = {"power": 300.0, "clock_sm": 1000.0, "throttle": 0x40, "mem_used": 70.0 * GIB,
                   "pcie_gen": 4.0, "pcie_width": 16.0, "pcie_rx": 5e9}
        values = [(writer.track(f"gpu.{name}", device=card), value) for name, value in of_card.items()]
        if other:
            busy = writer.add_device(OTHER, 0, "A100", memory_total=80 * GIB)
            values.append((writer.track("gpu.util", device=busy), 0.9))
        for number, uuid in enumerate(SLICES):
            shown = {} if visible is None else {"cuda_visible": number == visible}
            one = writer.add_device(uuid, 1, "A100 MIG 1g.10gb", memory_total=10 * GIB,
                                    properties={**PARENT, "gpu_instance": 7 + number, **shown})
            values += [(writer.track("gpu.mem_used", device=one), (number + 1) * GIB),
                       (writer.track("gpu.sm_active", device=one), 0.3 + 0.3 * number)]
            if ours == number:
                values.append((writer.track("gpu.process_mem", device=one, index=4000,
                                            properties={"whose": "target"}), GIB))
            if allocator == number:
                values.append((writer.track("torch.mem_reserved", device=one, process=1), GIB))
        for tick in range(40):
            for track, value in values:
                writer.sample(track, start + round((500 + tick * 50) * MS), value)

    uuids = {"0": told} if told else {}
    return make_run(path, events=put, properties={"torch": {"device_count": 1, "uuid": uuids}})


def facts_of(path: Path, **planned: Any) -> Facts:
    with Run.open(split(path, **planned)) as run:
        return gather(run, training_process(run))


@pytest.mark.parametrize(("planned", "slot"), [
    ({"told": "MIG-bbbbbbbb-2222"}, 1),
    ({"told": "bbbbbbbb-2222"}, 1), ({"told": "GPU-bbbbbbbb-2222"}, 1),  # as torch names it, without its kind
    ({"told": "GPU-cccccccc-0000", "visible": 1}, 1),  # of older CUDA: the card's
    ({"told": "GPU-cccccccc-0000", "visible": None, "ours": 0}, 0),
    ({"told": "cccccccc-0000", "visible": None}, 1),  # the busier one
    ({"allocator": 0, "visible": 1}, 0), ({"visible": 1}, 1),
])
def test_n09_the_slice_is_the_device(tmp_path: Path, planned: Mapping[str, Any], slot: int) -> None:
    facts = facts_of(tmp_path / "a.stepscope", **planned)
    assert facts.device is not None and facts.device.uuid == SLICES[slot]
    assert facts.card is not None and facts.card.uuid == CARD


def test_n09_a_slice_has_its_own_memory_and_activity_and_never_the_power_of_the_card(tmp_path: Path) -> None:
    facts = facts_of(tmp_path / "a.stepscope", told="MIG-bbbbbbbb-2222")
    assert facts.live["gpu.mem_used"] == 2 * GIB and facts.live["gpu.sm_active"] == pytest.approx(0.6)
    assert not {"gpu.power", "gpu.util"} & facts.live.keys()
    assert facts.readings.memory is not None and facts.readings.memory.total == 10 * GIB
    # What slows the card slows the slice; its clock and its link are the card's.
    assert facts.throttles and facts.live["gpu.clock_sm"] == 1000
    (found,) = throttling.check(facts).findings
    told = {e.text: (e.value, e.source) for e in found.evidence}
    assert told["SM clock"] == (1000, "NVML, of the whole card") and "Power" not in told
    assert told["Highest SM clock"] == (1410, "NVML, of the whole card")
    assert pcie_slot.check(facts).ruled_out.startswith("PCIe 4 x16")


def test_n09_nothing_of_a_verdict_is_taken_from_the_card_or_another(tmp_path: Path) -> None:
    with Run.open(split(tmp_path / "a.stepscope", told="MIG-aaaaaaaa-1111")) as run:
        told = diagnose(run).to_json()
    assert told["device"]["uuid"] == SLICES[0] and told["device"]["memory_total"] == 10 * GIB
    assert "gpu.power" not in told["live"]


def test_a_card_is_its_own_card_and_the_busiest_is_used(tmp_path: Path) -> None:
    facts = facts_of(tmp_path / "a.stepscope", told="GPU-dddddddd-0000")
    assert facts.device is not None and facts.device.uuid == OTHER and facts.card == facts.device


def test_labels_tell_a_slice_from_its_card(tmp_path: Path) -> None:
    with Run.open(split(tmp_path / "a.stepscope")) as run:
        assert [d.label for d in run.devices] == ["GPU 1", "GPU 0", "GPU 1 slice 7/0", "GPU 1 slice 8/0"]
