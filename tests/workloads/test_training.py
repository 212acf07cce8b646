"""What the settings do to a training: the same learning by other means, and what excludes what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from profiler import catalog
from profiler.errors import UsageError
from tests.workloads.learning import learnt
from workloads import _loader
from workloads._common import WorkloadError
from workloads._device import start
from workloads._faults import Faults
from workloads._loader import Batches
from workloads._training import Graphed, forward_of, optimizer_options

torch = pytest.importorskip("torch")


def test_other_means_learn_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = learnt(monkeypatch)
    assert len(plain) == 6 and len(set(plain)) == 6
    for name, value in [("optimizer", "foreach"), ("optimizer", "fused"), ("optimizer", "per-parameter"),
                        ("activation_checkpointing", True), ("non_blocking", False), ("static_shapes", True)]:
        assert learnt(monkeypatch, **{name: value}) == pytest.approx(plain, abs=1e-4), (name, value)


def test_accumulated_gradients_change_the_weights_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, stepped = learnt(monkeypatch), []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *a, **k: (stepped.append(1), step(*a, **k))[1])
    added = learnt(monkeypatch, accumulate=3)
    assert len(stepped) == 2 and added[0] == plain[0]
    assert added[3] != pytest.approx(plain[3], abs=1e-4)


def test_optimizers_are_made_by_their_names() -> None:
    for name in ("default", "foreach", "fused", "per-parameter"):
        options = optimizer_options(SimpleNamespace(optimizer=name))
        made = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0, **options)
        assert bool(made.defaults["fused"]) == (name == "fused")


def test_compiling_is_a_mode_and_still_yes_or_no(monkeypatch: pytest.MonkeyPatch) -> None:
    info = catalog.get("language_model")
    said = {text: catalog.parse_settings(info, [f"compile={text}"])["compile"]
            for text in ("true", "false", "True", "off", "reduce-overhead")}
    assert said == {"true": "default", "false": "off", "True": "default", "off": "off",
                    "reduce-overhead": "reduce-overhead"}
    monkeypatch.setattr(torch, "compile", lambda model, mode: (model, mode))
    made = catalog.make_settings(info.name, {"compile": "max-autotune"})
    assert forward_of("model", made) == ("model", "max-autotune")
    assert forward_of("model", catalog.make_settings(info.name, {})) == "model"


@pytest.mark.parametrize(("pairs", "says"), [
    (["prefetch_to_device=true"], "needs pin_memory"),
    (["device=cpu", "cuda_graphs=true"], "needs a GPU"),
    (["device=cpu", "pin_memory=true", "prefetch_to_device=true"], "needs a GPU"),
    (["device=cpu", "prefetch_to_device=true"], "needs a GPU"),  # pinned memory would not help
    (["cuda_graphs=true", "compile=reduce-overhead"], "makes CUDA graphs itself"),
    (["cuda_graphs=true", "activation_checkpointing=true"], "cannot be recorded"),
    (["cuda_graphs=true", "accumulate=2"], "writes each batch's gradients over"),
    (["cuda_graphs=true", "variable_shapes=1"], "needs static_shapes"),
    (["device=cpu", "sync_every_step=1"], "needs a GPU"),
    (["few_workers=1"], "needs 1 worker"),
    (["pageable_copies=1"], "needs pin_memory"),
    (["slow_decode=11"], "the range is 0.0 to 10.0"),
])
def test_what_excludes_what(pairs: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        catalog.parse_settings(catalog.get("language_model"), pairs)


@pytest.mark.parametrize(("pairs", "says"), [
    (["model=vit_b_16", "image_size=40"], "multiple of 16"),
    (["model=vit_b_16", "variable_shapes=1"], "one size only"),
    (["decode=gpu", "variable_shapes=1"], "needs decode=cpu"),
    (["decode=gpu", "device=cpu"], "needs a GPU"),
])
def test_what_excludes_what_for_images(pairs: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        catalog.parse_settings(catalog.get("image_classification"), pairs)


def test_a_gpu_that_is_not_there_is_told_by_the_run() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    made = catalog.make_settings("language_model", {"cuda_graphs": True})
    with pytest.raises(WorkloadError, match="cuda_graphs=true cannot be used, the device is cpu"):
        start(made, suits_cpu=True)


def test_graphs_are_recorded_at_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Any] = []

    def record(forward: Any, inputs: Any) -> Any:
        recorded.append(inputs)
        return lambda x: forward(x) + 1

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", record)
    graphed = forward_of(torch.neg, catalog.make_settings("language_model", {"cuda_graphs": True}))
    assert isinstance(graphed, Graphed)
    one = torch.ones(2)
    assert [graphed(one).tolist(), graphed(2 * one).tolist()] == [[0, 0], [-1, -1]]
    assert len(recorded) == 1 and recorded[0][0] is not one
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(WorkloadError, match="several ranks"):
        forward_of(torch.neg, catalog.make_settings("language_model", {"cuda_graphs": True}))


def test_batches_come_once_and_in_order_when_copied_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Stream:
        def __init__(self, device: Any = None) -> None: ...
        def wait_stream(self, other: Any) -> None: order.append("wait")

    @contextmanager
    def on(stream: Any) -> Iterator[None]:
        order.append("copy")
        yield

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    made = catalog.make_settings("language_model", {"pin_memory": True, "prefetch_to_device": True})
    loader = [(torch.full((2, 3), float(k)), torch.full((2,), k)) for k in range(3)]
    for images, labels in Batches(loader, made, torch.device("cpu"), Faults(made)):
        order.append(f"use {int(labels[0])}")
        assert images.shape == (2, 3) and int(images[0, 0]) == int(labels[0])
    assert order == ["copy", "wait", "copy", "use 0", "wait", "copy", "use 1", "wait", "use 2"]


def test_ranks_share_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    made = catalog.make_settings("language_model", {"batch_size": 2})
    seen = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        loader = _loader.make_loader([(torch.tensor(k),) for k in range(8)], made)
        batches = Batches(loader, made, torch.device("cpu"), Faults(made))
        epochs = [[int(x) for batch in batches.epoch(number) for x in batch[0]] for number in range(2)]
        assert epochs[0] != epochs[1]
        seen += epochs[0]
    assert sorted(seen) == list(range(8))
