"""The workloads run, tiny and in this process: steps counted, loss falling, the same with the same seed."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import pytest

from profiler.catalog import check, get, load
from profiler.cli import main
from workloads._common import WorkloadError

pytest.importorskip("torch")


def losses(out: str) -> list[tuple[int, float]]:
    """(step, loss) of each line that tells them."""
    return [(int(s), float(x)) for s, x in re.findall(r"^step (\d+)/\d+ loss (\S+)$", out, re.MULTILINE)]


def run(capsys: pytest.CaptureFixture[str], name: str, *pairs: str, data: Path | None = None) -> str:
    """What the workload prints, after it ended well. One thread: others may be using the machine."""
    settings = ("size=smallest", "threads=1", *pairs)
    argv = ["workload-run", name, *(word for pair in settings for word in ("--set", pair))]
    assert main([*argv, f"--data={data}"] if data else argv) == 0, capsys.readouterr().err
    return capsys.readouterr().out


CASES = [
    ("input_starved", ["latency_ms=0", "steps=50"], 50),
    ("image_classification", ["image_size=32", "images=16", "steps=10"], 10),
    ("language_model", ["steps=40"], 40),
]


@pytest.mark.parametrize(("name", "pairs", "steps"), CASES, ids=[case[0] for case in CASES])
def test_runs_to_its_end_and_learns_the_same_each_time(
    name: str, pairs: list[str], steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, name, *pairs)
    first, last = losses(out)[0], losses(out)[-1]
    assert (first[0], last[0]) == (1, steps)
    assert last[1] < first[1]
    unit = get(name).unit
    assert re.search(rf"^{steps} steps in \S+ s, \S+ {unit}/s over all of them$", out, re.MULTILINE)
    again = losses(run(capsys, name, *pairs))
    assert (again[0], again[-1]) == (first, last)
    other = losses(run(capsys, name, *pairs, "seed=1"))
    assert other[-1] != last


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_workers_give_the_same_order_of_data(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = {"image_classification": ["image_size=32", "images=16"], "input_starved": ["latency_ms=0"]}
    pairs = [*small.get(name, []), "steps=3"]
    alone = losses(run(capsys, name, *pairs))
    helped = losses(run(capsys, name, *pairs, "workers=1", "persistent_workers=true", "prefetch_factor=3"))
    assert helped[-1][0] == 3
    if name != "image_classification":
        assert helped[-1] == alone[-1]
    else:  # workers draw their own random crops, the same ones each time
        augmented = [*pairs, "workers=2", "colour_jitter=1", "rand_augment=2"]
        first, again = (losses(run(capsys, name, *augmented)) for _ in range(2))
        assert first == again and first[-1] != alone[-1]


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_bfloat16_and_layouts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = {"image_classification": ["image_size=32", "images=16", "channels_last=true"],
             "input_starved": ["latency_ms=0"]}
    out = run(capsys, name, *small.get(name, []), "steps=2", "precision=bfloat16")
    assert losses(out)[-1][0] == 2


@pytest.mark.parametrize(("model", "pairs"), [
    ("vit_b_16", ["decode=cpu", "random_crop=false"]),
    ("mobilenet_v3_small", ["colour_jitter=1", "rand_augment=2", "activation_checkpointing=true"]),
])
def test_networks_and_augmentations(model: str, pairs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "image_classification", "image_size=32", "images=16", "batch_size=2", "steps=2",
              f"model={model}", *pairs)
    assert losses(out)[-1][0] == 2


@pytest.mark.filterwarnings("ignore:The image decoding and encoding")
def test_the_gpus_way_to_decode_gives_the_same_pictures(tmp_path: Path) -> None:
    import torch
    from PIL import Image

    from workloads._images import ImageFiles, JpegFiles, augmentation, undecoded

    for index in range(3):
        (tmp_path / f"class_{index}").mkdir()
        Image.radial_gradient("L").convert("RGB").save(tmp_path / f"class_{index}" / "a.jpg", quality=95)
    middle = augmentation(64, crop=False, jitter=0, random_operations=0)
    files, pictures = JpegFiles(tmp_path, middle), ImageFiles(tmp_path, middle)
    labels, contents, paths = undecoded([files[index] for index in range(3)])
    assert labels.tolist() == [0, 1, 2] and len(files) == 3
    torch.manual_seed(0)
    decoded = files.decoded(contents, paths, torch.device("cpu"))
    torch.manual_seed(0)
    expected = torch.stack([pictures[index][0] for index in range(3)])
    assert decoded.shape == (3, 3, 64, 64) and (decoded - expected).abs().mean() < 0.05
    with pytest.raises(WorkloadError, match="cannot decode the image one of x"):
        files.decoded([torch.zeros(9, dtype=torch.uint8)], ["x"], torch.device("cpu"))
    (tmp_path / "b.png").write_bytes(b"")
    with pytest.raises(WorkloadError, match="only JPEG"):
        JpegFiles(tmp_path, middle)


def test_datasets_go_to_workers_that_are_spawned(tmp_path: Path) -> None:
    import pickle

    from workloads.input_starved import SlowFiles
    from workloads.language_model import Windows

    (tmp_path / "text").write_bytes(bytes(range(100)))
    windows = Windows(tmp_path / "text", 9)
    tokens, targets = windows[1]
    again = pickle.loads(pickle.dumps(windows))
    assert again.mapped is None and again[1][0].tolist() == tokens.tolist() == list(range(9, 18))
    assert targets.tolist() == list(range(10, 19)) and len(again) == 11
    assert pickle.loads(pickle.dumps(SlowFiles(tmp_path, 1.0))).latency_s == 0.001


def test_own_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    for index in range(8):
        folder = tmp_path / "classes" / ("cat" if index % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (50, 40), (index * 30, 0, 0)).save(folder / f"{index}.png")
        (tmp_path / "flat").mkdir(exist_ok=True)
        Image.new("L", (50, 40), index * 30).save(tmp_path / "flat" / f"{index}.jpg")
    for data in (tmp_path / "classes", tmp_path / "flat"):
        out = run(capsys, "image_classification", "image_size=32", "batch_size=4", "steps=3", data=data)
        assert losses(out)[-1][0] == 3  # the third step is in the second epoch


def fails(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line on stderr of a run that cannot be."""
    assert main(["workload-run", *argv]) == 2
    return capsys.readouterr().err.rpartition("stepscope: ")[2]


def test_a_batch_that_the_data_cannot_fill(capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, "image_classification", "--set", "images=16", "--set", "batch_size=17")
    assert said.startswith("one batch of 17 is more than all 16 samples")


def huge_png() -> bytes:
    """40,000 x 40,000 pixels in a few bytes, as such files are made to fill the memory."""
    parts = {b"IHDR": struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0), b"IDAT": zlib.compress(b""),
             b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts.items())


@pytest.mark.parametrize(("workers", "content"), [
    (0, b"no image at all"), (1, b"no image at all"), (0, b""), (0, huge_png()), (1, huge_png())])
def test_a_broken_image_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int, content: bytes
) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    said = fails(capsys, "image_classification", "--set", "size=smallest", "--set", "batch_size=1",
                 "--set", f"workers={workers}", f"--data={tmp_path}")
    assert said.startswith("cannot decode the image ") and "a.jpg" in said and said.count("\n") == 1


def test_own_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.txt").write_text("abc " * 300)
    (tmp_path / "two.md").write_text("def " * 300)
    for data in (tmp_path, tmp_path / "one.txt"):
        assert losses(run(capsys, "language_model", "steps=3", data=data))[-1][0] == 3
    said = fails(capsys, "language_model", "--set", "context=2000", f"--data={tmp_path / 'one.txt'}")
    assert said.startswith(f"{tmp_path / 'one.txt'} has 1200 bytes, fewer than one context")
    said = fails(capsys, "language_model", "--set", "batch_size=60", f"--data={tmp_path / 'one.txt'}")
    assert "one batch of 60" in said


def test_absent_torch_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(settings: object, data: object) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(load("language_model"), "run", run)
    assert "needs torch, which is not installed" in fails(capsys, "language_model")


def test_an_absent_gpu_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "there is no device cuda:1" in fails(capsys, "language_model", "--set", "device=cuda:1")
    said = fails(capsys, "language_model", "--set", "precision=float16")
    assert "float16 needs a GPU" in said
    assert check(get("language_model"), {"precision": "float16"}) == {}  # with auto it may be there


def test_auto_takes_the_gpu_with_most_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    from types import SimpleNamespace

    import torch

    from workloads._device import freest_gpu, pick_device

    listed = "GPU-aa, 100\nGPU-BB, 7000\nGPU-cc, [N/A]\n"
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: SimpleNamespace(stdout=listed))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    # torch's order need not be the driver's, and its UUIDs have no prefix
    uuids = ["cc", "bb", "aa"]
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: SimpleNamespace(uuid=uuids[i]))
    assert freest_gpu(3) == 1
    assert str(pick_device("auto")) == "cuda:1" and str(pick_device("cuda:2")) == "cuda:2"

    def absent(*args: object, **kwargs: object) -> None:
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(subprocess, "run", absent)
    assert freest_gpu(3) == 0


@pytest.mark.slow
def test_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert losses(run(capsys, "language_model", "steps=3", "compile=true"))[-1][0] == 3
