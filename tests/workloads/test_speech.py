"""Speech recognition learns from WAV files, and hears the same wherever spectrograms are made."""

from __future__ import annotations

import pickle
import re
import wave
from pathlib import Path

import pytest

from profiler.catalog import check, get
from profiler.cli import main

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "workloads"))


def run(capsys: pytest.CaptureFixture[str], *pairs: str, data: Path | None = None) -> tuple[int, str, str]:
    """How a tiny run ends, and what it prints."""
    settings = ("size=smallest", "clips=16", "seconds=0.6", "threads=1", *pairs)
    argv = ["workload-run", "speech", *(word for pair in settings for word in ("--set", pair))]
    code = main([*argv, f"--data={data}"] if data else argv)
    return code, *capsys.readouterr()


def losses(out: str) -> list[tuple[int, float]]:
    return [(int(s), float(x)) for s, x in re.findall(r"^step (\d+)/\d+ loss (\S+)$", out, re.MULTILINE)]


def write(path: Path, content: bytes, channels: int = 1, width: int = 2, rate: int = 16_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(content)
    return path


def test_learns_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "steps=12")
    first, last = losses(out)[0], losses(out)[-1]
    assert (first[0], last[0]) == (1, 12) and last[1] < first[1]
    assert re.search(r"^12 steps in \S+ s, \S+ samples/s over all of them$", out, re.MULTILINE)
    assert losses(run(capsys, "steps=12", "workers=1")[1])[-1] == last


def test_hears_the_same_wherever_spectrograms_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither what a batch is filled up with, nor activation checkpoints, change the loss."""
    alone = losses(run(capsys, "steps=2")[1])
    for pairs in (["spectrograms=device"], ["static_shapes=true"],
                  ["spectrograms=device", "static_shapes=true", "activation_checkpointing=true"]):
        assert losses(run(capsys, "steps=2", *pairs)[1]) == [
            (step, pytest.approx(loss, abs=2e-3)) for step, loss in alone]


def test_half_precision_and_accumulation(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = ["steps=4", "precision=bfloat16", "spectrograms=device", "accumulate=2", "optimizer=foreach"]
    assert losses(run(capsys, *pairs)[1])[-1][0] == 4


def test_graphs_need_static_shapes() -> None:
    values = {"device": "cuda", "cuda_graphs": True}
    assert "clips differ" in check(get("speech"), values)["cuda_graphs"]
    assert "cuda_graphs" not in check(get("speech"), {**values, "static_shapes": True})


@pytest.mark.parametrize(("width", "rate", "content", "channels"), [
    (1, 16_000, bytes([192, 128] * 800), 2),
    (2, 16_000, b"\x00\x20" * 800, 1),
    (3, 8_000, b"\x00\x00\x20" * 400, 1),
    (4, 32_000, b"\x00\x00\x00\x20" * 1600, 1),
])
def test_any_width_and_rate_is_read(
    tmp_path: Path, width: int, rate: int, content: bytes, channels: int
) -> None:
    """A level of a quarter, of the mean of channels, for 50 ms."""
    from workloads._sounds import read_wav

    sound = read_wav(write(tmp_path / "a.wav", content, channels, width, rate))
    assert sound.dtype == torch.float32 and sound.tolist() == [0.25] * 800


def test_own_sounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for index in range(6):
        write(tmp_path / "deep" / f"{index}.WAV", bytes(range(256)) * (40 + 5 * index), rate=12_000)
    write(tmp_path / "short.wav", b"\x00\x00")
    write(tmp_path / "long.wav", bytes(2 * 16_000))
    pairs = ["steps=3", "batch_size=2"]
    code, out, err = run(capsys, *pairs, data=tmp_path)
    assert (code, losses(out)[-1][0]) == (0, 3)
    assert "letters are made up" in err and "left out: 3 clips longer than 0.6 s" in err
    for name in ("deep/0", "deep/1", "short"):
        (tmp_path / f"{name}.txt").write_text("Ça va? It's 1 test.\n")
    code, out, err = run(capsys, *pairs, data=tmp_path)
    assert (code, losses(out)[-1][0]) == (0, 3) and "left out: 5 clips without a text" in err


def test_what_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, data=tmp_path)
    assert code == 2 and "end in .wav" in err
    write(tmp_path / "long.wav", bytes(2 * 16_000))
    code, _, err = run(capsys, data=tmp_path)
    assert code == 2 and "longer than 0.6 s. Set more seconds" in err
    (tmp_path / "long.wav").write_bytes(b"RIFF no sound at all")
    code, _, err = run(capsys, "batch_size=1", data=tmp_path)
    assert code == 2 and "cannot read the sound" in err and "long.wav" in err
    (tmp_path / "long.wav").write_bytes(b"")
    code, _, err = run(capsys, "batch_size=1", data=tmp_path)
    assert code == 2 and "long.wav: it ends too early" in err
    write(tmp_path / "long.wav", b"")
    code, _, err = run(capsys, "batch_size=1", data=tmp_path)
    assert code == 2 and "there is no sound in" in err


def test_texts_keep_the_letters_that_are_known(tmp_path: Path) -> None:
    from workloads._sounds import spoken

    (tmp_path / "a.txt").write_text("It's  A\ttest, no. 5\n")
    assert spoken(tmp_path / "a.txt") == "it's a test no"


def test_made_sounds_are_deterministic_and_of_their_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workloads._sounds import made_sounds, seconds_of

    made = []
    for name in ("one", "two"):
        monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / name))
        folder = made_sounds(8, 0.9)
        assert all(0.29 < seconds_of(file) <= 0.9 for file in folder.glob("*.wav"))
        made.append([file.read_bytes() for file in sorted(folder.glob("0*"))])
    assert made[0] == made[1] and len(made[0]) == len(set(made[0])) == 16


def test_a_batch_is_filled_up() -> None:
    from workloads.speech import joined

    a, b = torch.ones(9, 80), torch.ones(7, 80)
    letters = torch.tensor([3, 4]), torch.tensor([5])
    heard, frames, targets, lengths, counts = joined([(a, letters[0]), (b, letters[1])])
    assert heard.shape == (2, 9, 80) and heard.sum((1, 2)).tolist() == [720, 560]
    assert targets.tolist() == [[3, 4], [5, 0]] and frames.tolist() == [9, 7]
    assert (lengths, counts) == ((9, 7), (2, 1))  # no tensors: they stay on the host
    static = joined([(torch.ones(1360), letters[0])], longest=1600, most=5)
    assert static[0].shape == (1, 1600) and static[2].shape == (1, 5) and static[3] == (7,)


def test_clips_go_to_workers_that_are_spawned(tmp_path: Path) -> None:
    from workloads.speech import Clips

    write(tmp_path / "a.wav", bytes(4000))
    clips = pickle.loads(pickle.dumps(Clips(tmp_path, 1.0, spectrograms=True)))
    assert clips[0][0].shape == (11, 80) and clips.largest() == {"longest": 11, "most": len(clips[0][1])}
