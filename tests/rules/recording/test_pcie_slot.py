"""A card in a slow slot is a finding, as grave as its copies."""

import pytest

from profiler.rules.recording import pcie_slot
from tests.rules.recording.gpu_runs import BUSY, evidence, finding, gpu_facts

COPYING = {"stages": {"data": 1, "h2d": 30, "forward": 20, "backward": 30, "optimizer": 5},
           "device": {"h2d": 28, "forward": 20, "backward": 30, "optimizer": 5}, "lag": {"data": 0.1}}


def link(generation, width, util=0.9):
    return {"gpu": {"gpu.util": util, "gpu.pcie_gen": generation, "gpu.pcie_width": width}}


@pytest.mark.parametrize(("generation", "width", "title"), [
    (5, 8, "PCIe 5 x8 and could be PCIe 5 x16"), (3, 16, "PCIe 3 x16 and could be PCIe 5 x16"),
    (4, 4, "PCIe 4 x4 and could be PCIe 5 x16")])
def test_fewer_lanes_or_an_older_link(tmp_path, generation, width, title):
    found = finding(pcie_slot, gpu_facts(tmp_path / "a.stepscope", **COPYING, **link(generation, width)))
    assert title in found.title and found.severity == "warning"
    assert evidence(found, "The card could") == 16 * 3.938e9 and 0 < found.cost_ms < 30


def test_without_copies_it_is_only_told(tmp_path):
    found = finding(pcie_slot, gpu_facts(tmp_path / "a.stepscope", **BUSY, **link(5, 4)))
    assert found.severity == "info" and found.cost_ms == 0


def test_a_slot_older_than_the_card(tmp_path):
    card = {"pcie_gen": 4, "pcie_gen_card": 5}
    facts = gpu_facts(tmp_path / "a.stepscope", device_is=card, **BUSY, **link(4, 16))
    assert "PCIe 4 x16 and could be PCIe 5 x16" in finding(pcie_slot, facts).title


def test_a_link_that_was_slow_only_at_times_is_whole(tmp_path):
    facts = gpu_facts(tmp_path / "a.stepscope", **BUSY, **link(lambda k: 5 if k % 3 == 0 else 1, 16))
    assert "PCIe 5 x16" in pcie_slot.check(facts).ruled_out


@pytest.mark.parametrize("planned", [link(1, 16, util=0.01), link(None, 16), link(5, None), {}, link(9, 16)])
def test_what_is_not_known_is_no_finding(tmp_path, planned):
    outcome = pcie_slot.check(gpu_facts(tmp_path / "a.stepscope", **BUSY, **planned))
    assert outcome.lacks and not outcome.findings
