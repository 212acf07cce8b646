"""Ways to damage a trace. Each case is drawn from its number alone, so that it can be had again."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.importers.damage import FILE, TEXT
from tests.importers.healthy import Healthy

Document = dict[str, Any]
BAD: list[Any] = [None, True, False, "", "0", "-1", "x", "NaN", "nan", "1e400", "12.5", "stream 7", "\ud800",
                  "\x00", "\\", "é" * 50, "a" * 20_000, -1, 0, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63,
                  -2**63, 2**64, 10**30, -10**30, 1e18, 1e300, -1e300, 5e-324, 0.1, float("nan"),
                  float("inf"), -float("inf"), [], [1], [None], [2**63, "x"], {}, {"a": []}]
TIMES, JOINS = ("ts", "dur"), ("correlation", "External id", "external id", "Sequence number",
                               "Fwd thread id")


def _events(doc: Document) -> list[dict[str, Any]]:
    return doc["traceEvents"]


def _some(doc: Document, rng: random.Random) -> list[dict[str, Any]]:
    """One event, a few, a tenth, or all."""
    events = [e for e in _events(doc) if isinstance(e, dict)]
    if not events:
        return []
    count = rng.choice((1, 1, 3, max(1, len(events) // 10), len(events)))
    return rng.sample(events, min(count, len(events)))


def _holder(event: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The event, or its arguments."""
    args = event.get("args")
    return args if isinstance(args, dict) and args and rng.random() < 0.5 else event


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def remove_keys(doc: Document, rng: random.Random) -> None:
    events = _some(doc, rng)
    key = rng.choice([*(_holder(events[0], rng) if events else ()), "ts"])
    for event in events:
        event.pop(key, None)
        if isinstance(event.get("args"), dict):
            event["args"].pop(key, None)


def bad_values(doc: Document, rng: random.Random) -> None:
    same, value = rng.random() < 0.5, rng.choice(BAD)
    for event in _some(doc, rng):
        holder = _holder(event, rng)
        if holder:
            holder[rng.choice(list(holder))] = value if same else rng.choice(BAD)


def bad_times(doc: Document, rng: random.Random) -> None:
    key, value = rng.choice(TIMES), rng.choice(BAD)
    for event in _some(doc, rng):
        event[key] = value


def bad_join(doc: Document, rng: random.Random) -> None:
    """Everything joined with everything, or with nothing."""
    key, value = rng.choice((*JOINS, "stream", "device", "pid", "tid", "cat", "ph", "name")), rng.choice(BAD)
    for event in _some(doc, rng):
        holder = event if key in event else event.get("args")
        if isinstance(holder, dict):
            holder[key] = value


def types(doc: Document, rng: random.Random) -> None:
    """Numbers as text, text as numbers, one in a list."""
    change: Callable[[Any], Any] = rng.choice((str, lambda v: [v], lambda v: {"v": v},
                                               lambda v: float(len(str(v))),
                                               lambda v: -v if _number(v) else v, lambda v: f" {v} "))
    key = rng.choice(("ts", "dur", "pid", "tid", "name", "cat", "ph", "args"))
    for event in _some(doc, rng):
        if key in event:
            event[key] = change(event[key])


def huge(doc: Document, rng: random.Random) -> None:
    factor = rng.choice((10, 1e3, 1e6, 1e12, 1e30, -1, 0, 1e-6))
    for event in _some(doc, rng):
        holder = _holder(event, rng)
        for key, value in holder.items():
            if _number(value) and rng.random() < 0.5:
                holder[key] = value * factor


def swap(doc: Document, rng: random.Random) -> None:
    for one in _some(doc, rng):
        two = rng.choice(_events(doc))
        key = rng.choice(list(one) or ["ts"])
        if isinstance(two, dict) and key in one and key in two:
            one[key], two[key] = two[key], one[key]


def duplicate(doc: Document, rng: random.Random) -> None:
    events = _events(doc)
    again = copy.deepcopy(_some(doc, rng))
    if rng.random() < 0.3:
        again = again[:200] * rng.choice((2, 10))
    doc["traceEvents"] = events + again


def shuffle(doc: Document, rng: random.Random) -> None:
    rng.shuffle(_events(doc))


def drop(doc: Document, rng: random.Random) -> None:
    """All events of a category, or a part of the time."""
    events = _events(doc)
    if rng.random() < 0.5:
        kinds = sorted({str(e.get("cat")) for e in events if isinstance(e, dict)})
        gone = set(rng.sample(kinds, min(len(kinds), rng.randint(1, 3))))
        doc["traceEvents"] = [e for e in events if not isinstance(e, dict) or str(e.get("cat")) not in gone]
    else:
        a, b = sorted(rng.randrange(len(events) + 1) for _ in range(2))
        doc["traceEvents"] = events[:a] + events[b:] if rng.random() < 0.5 else events[a:b]


def stretch(doc: Document, rng: random.Random) -> None:
    """Times of some events moved or scaled, so that what was nested overlaps."""
    shift, factor = rng.choice((0, 1, 50, -300, 1e5)), rng.choice((0, 0.5, 1, 3, 1000))
    for event in _some(doc, rng):
        if _number(event.get("ts")):
            event["ts"] += shift
        if _number(event.get("dur")):
            event["dur"] *= factor


def nest(doc: Document, rng: random.Random) -> None:
    """Events of a thread inside each other, or each beyond the one before."""
    events = [e for e in _events(doc) if isinstance(e, dict) and _number(e.get("ts"))]
    end = max((e["ts"] for e in events), default=0) + 1000
    inside = rng.random() < 0.5
    for event in events if rng.random() < 0.5 else rng.sample(events, len(events) // 3):
        event["dur"] = end - event["ts"] if inside else 1e6
        if rng.random() < 0.5:
            event["tid"] = 1


def one_instant(doc: Document, rng: random.Random) -> None:
    for event in _some(doc, rng):
        event["ts"] = 1000
        if rng.random() < 0.5:
            event["dur"] = rng.choice((0, 0, 10))


def phases(doc: Document, rng: random.Random) -> None:
    for event in _some(doc, rng):
        event["ph"] = rng.choice(("B", "E", "X", "i", "I", "s", "f", "C", "M", "b", "e", "n", "N", "D", "",
                                  "XX", 7))


def steps(doc: Document, rng: random.Random) -> None:
    """Steps where none were, nested, twice, in any order, on any thread."""
    hosts = [e for e in _events(doc) if isinstance(e,
                                                   dict) and _number(e.get("ts")) and _number(e.get("dur"))]
    for event in rng.sample(hosts, min(len(hosts), rng.choice((1, 3, 30)))):
        new = {**event, "name": f"ProfilerStep#{rng.choice((0, 1, 2, 5, 2**40, 10**25))}", "args": {},
               "cat": rng.choice(("user_annotation", "Operator", "cpu_op", "gpu_user_annotation"))}
        new["dur"] = event["dur"] * rng.choice((1, 10, 1000))
        _events(doc).append(new)


def names(doc: Document, rng: random.Random) -> None:
    """Rows that mean something elsewhere than where they belong."""
    name = rng.choice(("cudaLaunchKernel", "cudaGraphLaunch", "cudaMalloc", "cudaDeviceSynchronize",
                       "cudaMemcpyAsync", "cudaStreamWaitEvent", "cudaEventRecord",
                       "enumerate(DataLoader)#_x.__next__", "[memory]", "ncclDevKernel_AllReduce_Sum_f32",
                       "Memcpy HtoD (Pageable -> Device)", "aten::mm", "checkpoint", "nn.Module: Linear_0",
                       "Optimizer.step#SGD.step", "record_param_comms", "aten::convolution"))
    for event in _some(doc, rng):
        event["name"] = name
        if rng.random() < 0.2:
            event["cat"] = rng.choice(("kernel", "cuda_runtime", "cpu_op", "gpu_memcpy", "cuda_sync",
                                       "user_annotation", "cpu_instant_event", "cuda_driver", "gpu_memset",
                                       "python_function"))


def top_level(doc: Document, rng: random.Random) -> None:
    key = rng.choice([*doc, "baseTimeNanoseconds", "deviceProperties", "distributedInfo", "displayTimeUnit"])
    value = rng.choice([*BAD, [None], [{"id": "0"}], [{"id": 0, "numSms": 0, "regsPerMultiprocessor": 0}],
                        [{"id": 0, "name": 7, "computeMajor": "x", "numSms": float("nan"), "warpSize": 0}],
                        {"rank": "x"}, {"rank": -1, "world_size": 2**70}])
    if key != "traceEvents" or rng.random() < 0.3:
        doc[key] = value
    if rng.random() < 0.3:
        doc.pop(rng.choice(list(doc)))


def shapes(doc: Document, rng: random.Random) -> None:
    """Arguments that the analysis computes with."""
    value = rng.choice((*BAD, [[2**62, 2**62], [2**62, 2**62]], [[-1, 3], [3, 4]], [[], [[]]],
                        "[[1, 2], [2, 3]]", [[0, 0], [0, 0]], [["a"]], [[1e300, 2], [2, 3]]))
    key = rng.choice(("Input Dims", "Input type", "Concrete Inputs", "Input Strides", "Call stack", "grid",
                      "block", "bytes", "shared memory", "registers per thread", "Bytes", "Addr",
                      "Total Allocated", "Total Reserved", "Group size", "In msg nelems", "Out msg nelems",
                      "dtype", "Device Id"))
    for event in _some(doc, rng):
        if isinstance(args := event.setdefault("args", {}), dict):
            args[key] = value


STRUCTURE: tuple[Callable[[Document, random.Random], None], ...] = (remove_keys, bad_values, bad_times,
                                                                    bad_join, types, huge, swap, duplicate,
                                                                    shuffle, drop, stretch, nest, one_instant,
                                                                    phases, steps, names, top_level, shapes)


@cache
def _encoded(healthy: Healthy) -> bytes:
    return json.dumps(healthy.document()).encode()


def case(healthy: tuple[Healthy, ...], number: int, seed: int = 0) -> tuple[str, str, bytes]:
    """Case `number`: what was done to what, a file name, and the file's content."""
    rng = random.Random(f"{seed}/{number}")
    source = rng.choice(healthy)
    done = [source.name]
    data = _encoded(source)
    if rng.random() < 0.65:
        doc = json.loads(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            change = rng.choice(STRUCTURE)
            if isinstance(doc.get("traceEvents"), list) and doc["traceEvents"]:
                change(doc, rng)
                done.append(change.__name__)
        data = json.dumps(doc, indent=rng.choice((None, None, 1))).encode()
    if len(done) == 1 or rng.random() < 0.15:
        harm = rng.choice(TEXT)
        data = harm(data, rng)
        done.append(harm.__name__)
    name = rng.choice(("trace.json", "rank3.json", "worker1.pt.trace.json"))
    if rng.random() < 0.12:
        pack = rng.choice(FILE)
        data = pack(data, rng)
        done.append(pack.__name__)
        name = rng.choice((name, name + ".gz", "ranks.tar.gz", "ranks.tar"))
    return " ".join(done), name, data
