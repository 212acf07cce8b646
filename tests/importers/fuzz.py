"""Damaged traces through the whole engine: each ends in a result that says what was lost, or one TraceError.

    python -m tests.importers.fuzz --count 10000 [--seed 0] [--workers 2] [--keep DIR]
    python -m tests.importers.fuzz --case 123 --write FILE

Worker processes take the cases, each under a limit of memory and a watchdog that ends a case which hangs,
also inside native code. A worker that dies is a failure of the case it was at; another goes on with the next.
Prints a summary and every failure; the exit status is 1 when there is one.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from profiler.analysis.trace import steps
from profiler.analysis.trace.breakdown import partition
from profiler.analysis.trace.joined import Joined
from profiler.errors import TraceError
from profiler.importers import kineto
from profiler.rules.trace.diagnosis import diagnose
from profiler.trace.model import Trace
from tests.importers.healthy import healthy
from tests.importers.mutations import case

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 1 << 30     # bytes that a case may make resident
ADDRESSES = 3 << 29  # bytes of address space, libraries and stacks included: what protects the machine
HANG_S = 60
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def examine(path: Path) -> str:
    """The word for how a file ended: "result", "noted" (a result that says what is missing), "error".

    Anything else, AssertionError for a broken promise included, is raised.
    """
    try:
        traces = kineto.load(path)
        told = diagnose(traces, path.name).to_json()
    except TraceError as error:
        assert str(error).strip() and "\n" not in str(error), "an error is one line"
        return "error"
    json.dumps(told, allow_nan=False).encode()
    assert traces, "no process and no error"
    for trace in traces:
        _columns(trace)
        _sums(trace)
    lost = any(trace.losses.any for trace in traces)
    assert not lost or told["notes"], "something was lost, and nothing says so"
    assert any(len(t.host) or len(t.device) or t.notes for t in traces), "an empty result without a word"
    return "noted" if told["notes"] else "result"


def _columns(trace: Trace) -> None:
    """What the model promises of every table."""
    for table in (trace.host, trace.device):
        assert (table.end >= table.start).all() and (np.diff(table.start) >= 0).all(), "rows out of order"
        assert ((table.name >= 0) & (table.name < len(trace.names))).all(), "a row without a name"
    threads = trace.host.thread
    assert ((threads >= 0) & (threads < len(trace.threads))).all(), "a row without a thread"
    for name in trace.names:
        name.encode()  # fit for a file and a screen


def _sums(trace: Trace) -> None:
    """The partition fills every window exactly."""
    joined = Joined(trace)
    found = partition.partition(joined, steps.find(joined))
    widths = found.windows[:, 1] - found.windows[:, 0]
    assert (found.ns.sum(axis=1) == widths).all() and (found.ns >= 0).all(), "a window is not filled exactly"


def _peak() -> int:
    """The most memory that was resident since `_forget`, bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def work(first: int, count: int, stride: int, seed: int) -> None:
    """A worker: cases `first`, `first + stride`, ... below `count`; a JSON line before and after each."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    sources = healthy()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, count, stride):
            done, name, data = case(sources, number, seed)
            print(json.dumps({"begin": number, "done": done}), flush=True)
            path = Path(folder) / name
            path.write_bytes(data)
            _forget()
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            begin, reason = time.perf_counter(), ""
            try:
                outcome = examine(path)
            except Exception as error:
                outcome, reason = "failure", _reason(error)
            faulthandler.cancel_dump_traceback_later()
            peak = _peak()
            if peak > MEMORY:
                outcome, reason = "failure", f"{reason} {peak >> 20} MiB resident".strip()
            print(json.dumps({"end": number, "outcome": outcome, "reason": reason, "peak": peak,
                              "seconds": time.perf_counter() - begin}), flush=True)
            path.unlink()


def _reason(error: BaseException) -> str:
    """The error and where it came from, in one line."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if str(ROOT) in f.filename]
    where = " < ".join(f"{Path(f.filename).relative_to(ROOT)}:{f.lineno} {f.name}" for f in frames[-3:][::-1])
    return f"{type(error).__name__}: {str(error)[:200]} at {where}"


def _watched(first: int, count: int, stride: int, seed: int) -> Iterator[dict[str, Any]]:
    """What became of every case of one share, whatever becomes of the workers."""
    while first < count:
        with tempfile.TemporaryFile() as err:
            command = [sys.executable, "-m", "tests.importers.fuzz", "--worker", f"{first},{stride}",
                       "--seed", str(seed), "--count", str(count)]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True, cwd=ROOT,
                                     env={**os.environ, **ENVIRONMENT})
            assert child.stdout
            done, at = "", first - stride
            for line in child.stdout:
                said = json.loads(line)
                if "begin" in said:
                    at, done = said["begin"], said["done"]
                else:
                    yield {**said, "number": at, "done": done}
                    first = at + stride
            if child.wait() == 0:
                return
            err.seek(0)
            last = err.read().decode(errors="replace")[-1500:]
            if at < first:
                raise SystemExit(f"a worker ends by itself with {child.returncode}:\n{last}")
            yield {"number": at, "done": done, "outcome": "failure", "seconds": 0.0, "peak": 0,
                   "reason": f"the process ended with {child.returncode}: {last}"}
            first = at + stride


def run(count: int, seed: int, workers: int) -> list[dict[str, Any]]:
    """All cases; a record of each."""
    records: list[dict[str, Any]] = []
    begin, shown = time.monotonic(), sys.stderr.isatty()

    def share(k: int) -> None:
        for record in _watched(k, count, workers, seed):
            records.append(record)
            if shown:
                print(f"\r{len(records)} of {count}", end="", file=sys.stderr)

    threads = [threading.Thread(target=share, args=(k,)) for k in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(records)} cases in {time.monotonic() - begin:.0f} s", flush=True)
    return sorted(records, key=lambda r: r["number"])


def report(records: list[dict[str, Any]], count: int, seed: int, keep: Path | None) -> int:
    """Print the summary; the exit status."""
    outcomes = collections.Counter(r["outcome"] for r in records)
    print(", ".join(f"{n} {name}" for name, n in outcomes.most_common()))
    if records:
        slow, large = max(records, key=lambda r: r["seconds"]), max(records, key=lambda r: r["peak"])
        print(f"slowest {slow['seconds']:.2f} s (case {slow['number']}: {slow['done']}), "
              f"largest {large['peak'] >> 20} MiB (case {large['number']}: {large['done']})")
    failures: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for record in records:
        if record["outcome"] == "failure":
            failures[record["reason"]].append(record)
    sources = healthy() if keep and failures else ()
    for reason, cases in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(cases)} x {reason}")
        for record in cases[:5]:
            print(f"    case {record['number']}: {record['done']}")
            if keep:
                _, name, data = case(sources, record["number"], seed)
                (keep / f"{record['number']}-{name}").write_bytes(data)
    return 1 if failures or len(records) != count else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write the first failing files here")
    parser.add_argument("--case", type=int, help="one case alone, in this process")
    parser.add_argument("--write", type=Path, metavar="FILE", help="with --case: write its file, run nothing")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        first, stride = map(int, args.worker.split(","))
        work(first, args.count, stride, args.seed)
        return 0
    if args.case is not None:
        done, name, data = case(healthy(), args.case, args.seed)
        print(f"{done}: {name}, {len(data)} bytes")
        if args.write:
            args.write.write_bytes(data)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            print(examine(path))
        return 0
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    return report(run(args.count, args.seed, args.workers), args.count, args.seed, args.keep)


if __name__ == "__main__":
    sys.exit(main())
