"""Requests that come by chance, batches that form while they wait, and how long the answers took."""

from __future__ import annotations

import queue
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

ENOUGH = 10  # fewer latencies have no percentiles, only a range


class Request(NamedTuple):
    """When it came (time.monotonic), and what gives its input."""

    at: float
    read: Callable[[], Any]


class Requests:
    """Requests at Poisson times, `rate` a second, for samples of `dataset` in their order, again and again.

    They come whether or not the ones before were answered, as users do; those that
    find `room` of them waiting are refused. Inputs are read by so many `threads`
    as requests come, or by who asks for them.
    """

    def __init__(self, dataset: Any, rate: float, seed: int, threads: int, room: int) -> None:
        self.dataset, self.rate, self.seed, self.room = dataset, rate, seed, room
        self.refused = 0
        self.pool = ThreadPoolExecutor(threads) if threads else None
        self.waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self.over = threading.Event()
        self.source = threading.Thread(target=self._come, name="requests", daemon=True)

    def __enter__(self) -> Requests:
        self.source.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.source.join()
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def _come(self) -> None:
        rng = random.Random(self.seed)
        at, index = time.monotonic(), 0
        while not self.over.is_set():
            at += rng.expovariate(self.rate)
            if self.over.wait(max(0.0, at - time.monotonic())):
                return
            if self.waiting.qsize() < self.room:
                # Of when it should have come: a late source must not make latencies look short.
                self.waiting.put(Request(at, self._reader(index % len(self.dataset))))
            else:
                self.refused += 1
            index += 1

    def _reader(self, index: int) -> Callable[[], Any]:
        if self.pool is None:
            return partial(self.dataset.__getitem__, index)
        future: Future[Any] = self.pool.submit(self.dataset.__getitem__, index)
        return future.result

    def batches(self, most: int, wait: float) -> Iterator[list[Request]]:
        """Up to `most` requests at a time, sooner when the first of them has waited `wait` seconds."""
        while True:
            batch = [self.waiting.get()]
            until = batch[0].at + wait
            while len(batch) < most:
                try:
                    left = until - time.monotonic()
                    batch.append(self.waiting.get(timeout=left) if left > 0 else self.waiting.get_nowait())
                except queue.Empty:
                    break
            yield batch


def figures(latencies: Sequence[float]) -> dict[str, float | int | None]:
    """What is told of latencies in seconds, in ms: percentiles are None where there are too few."""
    ms = [1000 * latency for latency in latencies]
    at = statistics.quantiles(ms, n=100, method="inclusive") if len(ms) >= ENOUGH else [None] * 99
    return {"requests": len(ms), "min_ms": min(ms), "p50_ms": at[49], "p95_ms": at[94], "p99_ms": at[98],
            "max_ms": max(ms)}


def told(latencies: Sequence[float]) -> str:
    """One line on latencies in seconds: p50, p95 and p99, or the range of a few."""
    ms = figures(latencies)
    if ms["p50_ms"] is None:
        return f"latency {ms['min_ms']:.1f} to {ms['max_ms']:.1f} ms over {ms['requests']} requests"
    return (f"latency p50 {ms['p50_ms']:.1f} ms, p95 {ms['p95_ms']:.1f} ms, p99 {ms['p99_ms']:.1f} ms, "
            f"largest {ms['max_ms']:.1f} ms over {ms['requests']} requests")
