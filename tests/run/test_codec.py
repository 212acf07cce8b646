"""What is packed comes back as it was, and nothing that a file holds is taken for more than it is."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.run import decode
from profiler.run.codec import HEADER, journal_row, pack_block, pack_floats, pack_ints

times = st.integers(-(2**50), 2**50)
finite = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
values = st.one_of(finite, decimals, st.integers(-(2**60), 2**60).map(float))


def _block(items: list[int], numbers: list[float]) -> decode.Part:
    return decode.block(0, len(items), pack_block([pack_ints(items), pack_floats(numbers)]))


@given(st.lists(st.tuples(times, values), min_size=1, max_size=60))
def test_samples_come_back_exactly(samples: list[tuple[int, float]]) -> None:
    part = _block([t for t, _ in samples], [v for _, v in samples])
    assert part.t0.tolist() == [t * 1000 for t, _ in samples]
    assert part.low.tolist() == [v for _, v in samples]


@given(st.lists(decimals, min_size=1, max_size=60))
def test_decimal_fractions_come_back_exactly(numbers: list[float]) -> None:
    assert _block(list(range(len(numbers))), numbers).low.tolist() == numbers


@pytest.mark.parametrize("numbers", [
    [0.0, 0.0], [1e308, -1e308], [5e-324], [2.0**53, 2.0**53 + 2], [-(2.0**62)], [0.1 + 0.2], [1 / 3, 0.5],
])
def test_extreme_values(numbers: list[float]) -> None:
    assert _block([7] * len(numbers), numbers).low.tolist() == numbers


def test_what_a_driver_tells_is_small() -> None:
    rng = random.Random(1)
    watts = [rng.gauss(300_000, 8000) // 1 / 1000 for _ in range(300)]
    ticks = [i * 100_000 + int(rng.expovariate(1 / 100)) for i in range(300)]
    assert len(pack_block([pack_ints(ticks), pack_floats(watts)])) < 5 * 300


def test_journal_row_comes_back() -> None:
    tracks, stamps, numbers = decode.journal_row(2, journal_row([1, 2], [-5, 6], [0.5, 7.0]))
    assert (tracks.tolist(), stamps.tolist(), numbers.tolist()) == ([1, 2], [-5000, 6000], [0.5, 7.0])


@given(st.binary(max_size=200), st.integers(-1, 300), st.integers(0, 2))
def test_garbage_is_an_error(raw: bytes, n: int, level: int) -> None:
    for data in (raw, zlib.compress(raw)):
        try:
            part = decode.block(level, n, data)
        except (ValueError, zlib.error):
            continue
        assert len(part) == n


def test_a_bomb_is_not_unpacked() -> None:
    bomb = zlib.compress(bytes(1 << 26), 9)
    with pytest.raises(ValueError, match="wrong length"):
        decode.block(0, 4, bomb)
    with pytest.raises(ValueError, match="entries"):
        decode.block(0, 1 << 40, bomb)
    header = HEADER.pack(0, 8, 0, 1, 0, 0)
    with pytest.raises(ValueError, match="shorter"):
        decode.block(0, 1 << 20, zlib.compress(header))


def test_numbers_that_overflow_do_not_raise() -> None:
    raw = HEADER.pack(1, 8, 0, 1, 2**62, 2**62) + bytes([255]) * 8 + HEADER.pack(0, 0, 0, 1, 0, 1)
    with np.errstate(all="raise"):
        assert len(decode.block(0, 2, zlib.compress(raw))) == 2
