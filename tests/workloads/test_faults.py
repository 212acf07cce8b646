"""Each fault is what its file says: the protocol, what its hooks do, and that it changes no result."""

from __future__ import annotations

import gc
import tempfile
import threading
import time
import zlib
from types import ModuleType
from typing import Any

import pytest

from profiler import catalog
from tests.waiting import until
from tests.workloads.learning import learnt
from workloads import _faults
from workloads._common import WorkloadError
from workloads._faults import Faults, fault
from workloads._loader import Batches
from workloads._training import State

torch = pytest.importorskip("torch")

ALL = [fault(name) for name in _faults.names()]
ANYWHERE = [module.NAME for module in ALL if module.NEEDS == "cpu"]
HOOKS = {"pointless", "start", "dataset", "loader", "collate", "model", "batch", "before_step", "after_step"}
VERDICTS = {"input_bound", "transfer_bound", "sync_bound", "launch_bound", "host_bound", "allocator_bound",
            "communication_bound", "compute_bound"}
CPU = torch.device("cpu")


def named(module: ModuleType) -> str:
    return module.NAME


def test_the_faults_that_can_be_ordered() -> None:
    assert _faults.names() == (
        "allocator_churn", "epoch_start_stall", "few_workers", "gc_pauses", "large_copies", "memory_pressure",
        "pageable_copies", "periodic_checkpoint", "slow_decode", "slow_storage", "sync_every_step",
        "thread_oversubscription", "tiny_kernels", "uneven_ranks", "variable_shapes")


@pytest.mark.parametrize("module", ALL, ids=named)
def test_each_fault_fulfils_the_protocol(module: ModuleType) -> None:
    assert module.__name__.endswith(f".{module.NAME}")
    doc = " ".join(module.__doc__.split())
    on_cpu = getattr(module, "ON_CPU", module.VERDICT)
    assert {module.VERDICT, on_cpu} <= VERDICTS and module.VERDICT in doc and on_cpu in doc
    assert f"Rule {module.RULE}," in doc and f"stage {module.STAGE}" in doc and "Remedy: " in doc
    assert module.STAGE in ("data", "h2d", "forward", "backward", "optimizer", "other")
    assert module.NEEDS in ("cpu", "cuda", "ranks")
    if module.FACTOR is None:
        assert module.NEEDS == "cuda" and "Factor: needs a GPU" in doc
    else:
        low, high = module.FACTOR
        assert 1 < low < high and f"{low:g} to {high:g}." in doc
    public = {name for name, value in vars(module).items() if name.islower() and callable(value)
              and getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")}
    assert public and public <= HOOKS


@pytest.mark.parametrize("module", ALL, ids=named)
def test_the_control_and_the_fault_beside_it_can_run(module: ModuleType) -> None:
    for workload in module.WORKLOADS:
        setting = catalog.get(workload).setting(module.NAME)
        assert (setting.type, setting.default, setting.minimum, setting.maximum) == ("float", 0, 0, 10)
        assert setting.group == "Faults" and module.__doc__.startswith(setting.help)
    info = catalog.get(module.WORKLOADS[0])
    control = info.defaults() | info.sizes["smallest"] | module.CONTROL
    assert catalog.check(info, control) == {} and control[module.NAME] == 0
    ordered = control | module.FAULTY | {module.NAME: 1.0}
    assert catalog.check(info, ordered) == {}
    if module.REMEDY:
        setting, value = module.REMEDY
        beside = {"pin_memory": True} if setting == "prefetch_to_device" else {}
        assert catalog.check(info, {**ordered, **beside, setting: value}) == {}


def test_faults_change_how_long_it_takes_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    plain = learnt(monkeypatch)
    faults = catalog.get("language_model").faults
    can = [name for name in ANYWHERE if name in faults and name != "few_workers"]
    assert len(can) >= 6
    alive = threading.active_count()
    assert learnt(monkeypatch, **dict.fromkeys(can, 0.2)) == pytest.approx(plain, abs=1e-4)
    until(lambda: threading.active_count() <= alive, what="the threads of the fault have ended")
    assert len(waited) >= 12


def settings_of(workload: str = "language_model", **values: Any) -> Any:
    return catalog.make_settings(workload, values)


def samples() -> list[tuple[Any, int]]:
    return [(torch.full((250,), float(k)), k) for k in range(8)]  # of 1,000 bytes


def test_samples_come_late_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    slow = Faults(settings_of(slow_storage=2.0)).dataset(samples())
    assert len(slow) == 8 and slow[3][1] == 3
    assert waited == [pytest.approx(2 * (0.005 + 1000 / 20e6))]


def test_samples_are_unpacked_as_often_as_the_dial_says(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []
    monkeypatch.setattr(zlib, "decompress", lambda block: unpacked.append(len(block)))
    per = []
    for strength in (1.0, 3.0):
        unpacked.clear()
        assert Faults(settings_of(slow_decode=strength)).dataset(samples())[5][1] == 5
        per.append(len(unpacked))
    assert per[1] == 3 * per[0] > 0


def test_what_a_loader_is_made_with(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"num_workers": 8, "pin_memory": True}
    few = [Faults(settings_of(few_workers=s)).loader(dict(options))["num_workers"] for s in (0, 0.34, 1, 10)]
    assert few == [8, 3, 2, 0]
    assert Faults(settings_of(pageable_copies=1.0)).loader(dict(options))["pin_memory"] is False
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    stalls = Faults(settings_of("image_classification", epoch_start_stall=2.0)).loader(dict(options))
    stalls["worker_init_fn"](3)
    assert waited == [1.0]


def test_large_batches_reach_the_device_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    from workloads._faults import large_copies

    monkeypatch.setattr(large_copies, "BYTES", 1000)
    made = settings_of(large_copies=0.5)
    host = large_copies.batch((torch.zeros(2, 3),), 0, 0.5)
    assert len(host) == 2 and host[1].nbytes == 500
    for batch in Batches([(torch.zeros(2, 3), torch.zeros(2))], made, CPU, Faults(made)):
        assert len(batch) == 2


@pytest.mark.parametrize("static", [False, True])
def test_shapes_differ_unless_they_are_static(static: bool) -> None:
    made = settings_of(variable_shapes=1.0, static_shapes=static)
    tokens = torch.ones(2, 64, dtype=torch.int64)
    seen = list(Batches([(tokens, tokens)] * 8, made, CPU, Faults(made)))
    assert all(inputs.shape == targets.shape for inputs, targets in seen)
    lengths = {inputs.shape[1] for inputs, _ in seen}
    if static:
        assert lengths == {64}
        assert all(set(inputs.unique().tolist()) <= {0, 1} for inputs, _ in seen)
        assert any((targets == -100).any() for _, targets in seen)  # what no loss counts
    else:
        assert len(lengths) > 3 and min(lengths) >= 32


def test_images_are_cut_and_their_labels_are_not() -> None:
    images, labels = torch.ones(2, 3, 64, 64), torch.ones(2)
    sides = set()
    for index in range(8):
        cut, same = fault("variable_shapes").batch((images, labels), index, 1.0)
        assert cut.shape[2] == cut.shape[3] and same is labels
        sides.add(cut.shape[2])
    assert len(sides) > 3 and min(sides) >= 32


def test_the_statistics_change_no_answer() -> None:
    model = torch.nn.Linear(3, 2)
    wrapped = Faults(settings_of(tiny_kernels=0.01)).model(model)
    x = torch.ones(1, 3)
    with torch.profiler.profile() as profiled:
        assert torch.equal(wrapped(x), model(x))
    assert {e.key: e.count for e in profiled.key_averages()}["aten::mul_"] == 50
    assert {id(p) for p in wrapped.parameters()} == {id(p) for p in model.parameters()}


def trained_state() -> State:
    model = torch.nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    return State(settings_of(), CPU, model, torch.optim.SGD(model.parameters(), lr=0.1))


def test_what_is_done_beside_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    monkeypatch.setattr(torch.Tensor, "item", lambda self: reads.append(1))
    Faults(settings_of(sync_every_step=1.5)).before_step(trained_state(), 0)
    assert len(reads) == 3  # of 2 gradients

    collected: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))
    pauses, state = Faults(settings_of(gc_pauses=0.01)), trained_state()
    for index in range(20):
        pauses.after_step(state, index)
    assert len(collected) == 2
    state.kept.close()

    saved: list[Any] = []
    monkeypatch.setattr(torch, "save", lambda content, file: saved.append(content))
    for index in range(10):
        Faults(settings_of(periodic_checkpoint=1.0)).after_step(trained_state(), index)
    assert len(saved) == 6 and set(saved[0]) == {"model", "optimizer"}


def test_memory_is_filled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.cuda
    for name, value in [("mem_get_info", (5_000_000, 0)), ("max_memory_allocated", 2_000_000),
                        ("memory_reserved", 1_500_000), ("empty_cache", None)]:
        monkeypatch.setattr(cuda, name, lambda *_, value=value: value)
    state, pressure = trained_state(), fault("memory_pressure")
    taken: list[int] = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda size, **k: (taken.append(size), empty(size, **k))[1])
    for index in range(30):
        pressure.after_step(state, index, 1.0)
    assert taken == [5_000_000 - (2_500_000 - 1_500_000)]
    state.kept.close()


def test_the_last_rank_computes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    model = torch.nn.Linear(3, 2)
    model.register_forward_hook(lambda *_: called.append(1))
    uneven = fault("uneven_ranks")
    with pytest.raises(WorkloadError, match="two ranks"):
        uneven.start(settings_of(), 1.0)
    monkeypatch.setenv("WORLD_SIZE", "2")
    counts = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        called.clear()
        made = uneven.model(model, 1.5)
        for _ in range(4):
            made(torch.ones(1, 3))
        counts.append(len(called))
    assert counts == [4, 4 + 12 * 4]


def test_temporary_files_are_gone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fault("periodic_checkpoint").after_step(trained_state(), 4, 1.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_ranks_train_one_model() -> None:
    import subprocess
    import sys

    from profiler.paths import entry_point

    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0",
               "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", str(entry_point()), "workload-run",
               "language_model"]
    for pair in ("size=smallest", "threads=1", "steps=3", "device=cpu", "uneven_ranks=1"):
        command += ["--set", pair]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 steps in ") == 2
