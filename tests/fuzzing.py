"""Cases drawn by number, examined in worker processes: what the fuzzing of traces and of run files shares.

Worker processes take the cases, each under a limit of memory and a watchdog that ends a case which hangs,
also inside native code. A worker that dies is a failure of the case it was at; another goes on with the next.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.record.used import peak_memory

ROOT = Path(__file__).resolve().parents[1]
HANG_S = 60  # of the processor's time: what others do meanwhile makes no hang
ASLEEP_S = 15 * HANG_S  # that pass
FOR_EVER = 1 << 62  # cases
Data = bytes | Mapping[str, bytes]  # of the one file, or of several in one folder by their names
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


@dataclass(frozen=True)
class Fuzz:
    """What is fuzzed: `module` runs `main` of it, `source` makes what `case` damages."""

    module: str
    case: Callable[[Any, int, int], tuple[str, str, Data]]  # (source, number, seed): done, file name, data
    source: Callable[[], Any]
    examine: Callable[[Path], str]  # the word for how a file ended; anything else than a word is a failure
    memory: int      # bytes that a case may make resident
    addresses: int   # bytes of address space, libraries and stacks included: what protects the machine


def _cpu() -> float:
    """Seconds of the processor's time so far, of children that have ended too."""
    return sum(os.times()[:4])


def _forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def work(fuzz: Fuzz, first: int, count: int, stride: int, seed: int, until: float = math.inf) -> None:
    """A worker: cases `first`, `first + stride`, ... below `count`; a JSON line before and after each.

    It ends before a case that would begin after `until`, seconds of the monotonic clock.
    """
    resource.setrlimit(resource.RLIMIT_AS, (fuzz.addresses, fuzz.addresses))
    faulthandler.register(signal.SIGPROF, chain=True)  # says where it is, and then it ends
    sources = fuzz.source()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, count, stride):
            if time.monotonic() >= until:
                return
            done, name, data = fuzz.case(sources, number, seed)
            print(json.dumps({"begin": number, "done": done}), flush=True)
            path = put(Path(tempfile.mkdtemp(dir=folder)), name, data)
            _forget()
            signal.setitimer(signal.ITIMER_PROF, HANG_S)
            faulthandler.dump_traceback_later(ASLEEP_S, exit=True)
            begin, reason = _cpu(), ""
            try:
                outcome = fuzz.examine(path)
            except Exception as error:
                outcome, reason = "failure", _reason(error)
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_PROF, 0)
            peak = peak_memory()
            if peak > fuzz.memory:
                outcome, reason = "failure", f"{reason} {peak >> 20} MiB resident".strip()
            print(json.dumps({"end": number, "outcome": outcome, "reason": reason, "peak": peak,
                              "seconds": _cpu() - begin}), flush=True)
            shutil.rmtree(path.parent, ignore_errors=True)


def put(folder: Path, name: str, data: Data) -> Path:
    """The files of a case; the path of the one that is looked at."""
    for other, content in ({name: data} if isinstance(data, bytes) else data).items():
        (folder / other).write_bytes(content)
    return folder / name


def _reason(error: BaseException) -> str:
    """The error and where it came from, in one line."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if str(ROOT) in f.filename]
    where = " < ".join(f"{Path(f.filename).relative_to(ROOT)}:{f.lineno} {f.name}" for f in frames[-3:][::-1])
    return f"{type(error).__name__}: {str(error)[:200]} at {where}"


def _watched(fuzz: Fuzz, first: int, count: int, stride: int, seed: int,
             until: float) -> Iterator[dict[str, Any]]:
    """What became of every case of one share, whatever becomes of the workers."""
    while first < count and time.monotonic() < until:
        with tempfile.TemporaryFile() as err:
            command = [sys.executable, "-m", fuzz.module, "--worker", f"{first},{stride}",
                       "--seed", str(seed), "--count", str(count), "--until", str(until)]
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
            if at < first:  # while it made the next case, or before any
                at, done = first, "(it could not be made)"
            yield {"number": at, "done": done, "outcome": "failure", "seconds": 0.0, "peak": 0,
                   "reason": f"the process ended with {child.returncode}: {last}"}
            first = at + stride


def run(fuzz: Fuzz, count: int, seed: int, workers: int, seconds: float = math.inf) -> list[dict[str, Any]]:
    """All cases, or those of some seconds; a record of each."""
    records: list[dict[str, Any]] = []
    begin, shown = time.monotonic(), sys.stderr.isatty()
    until = begin + seconds

    def share(k: int) -> None:
        for record in _watched(fuzz, k, count, workers, seed, until):
            records.append(record)
            if shown:
                print(f"\r{len(records)} cases", end="", file=sys.stderr)

    threads = [threading.Thread(target=share, args=(k,)) for k in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begin
    print(f"{len(records)} cases in {took:.0f} s, {len(records) / took:.1f} a second", flush=True)
    return sorted(records, key=lambda r: r["number"])


def report(fuzz: Fuzz, records: list[dict[str, Any]], count: int, seed: int, keep: Path | None) -> int:
    """Print the summary; the exit status."""
    outcomes = collections.Counter(r["outcome"] for r in records)
    print(", ".join(f"{n} {name}" for name, n in outcomes.most_common()))
    if records:
        slow, large = max(records, key=lambda r: r["seconds"]), max(records, key=lambda r: r["peak"])
        print(f"slowest {slow['seconds']:.2f} s of CPU (case {slow['number']}: {slow['done']}), "
              f"largest {large['peak'] >> 20} MiB (case {large['number']}: {large['done']})")
    failures: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for record in records:
        if record["outcome"] == "failure":
            failures[record["reason"]].append(record)
    sources = fuzz.source() if keep and failures else None
    for reason, cases in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(cases)} x {reason}")
        for record in cases[:5]:
            print(f"    case {record['number']}: {record['done']}")
            if keep:
                _, name, data = fuzz.case(sources, record["number"], seed)
                folder = keep / f"{fuzz.module.split('.')[1]}-{record['number']}"
                folder.mkdir(parents=True, exist_ok=True)
                put(folder, name, data)
    return 1 if failures or not records or (count != FOR_EVER and len(records) != count) else 0


def main(fuzz: Fuzz, doc: str) -> int:
    """The command line of a fuzzing module."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, help="as many cases as these take, in place of --count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write the first failing files here")
    parser.add_argument("--case", type=int, help="one case alone, in this process")
    parser.add_argument("--write", type=Path, metavar="DIR", help="with --case: write its files, run nothing")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=math.inf, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        first, stride = map(int, args.worker.split(","))
        work(fuzz, first, args.count, stride, args.seed, args.until)
        return 0
    if args.case is not None:
        done, name, data = fuzz.case(fuzz.source(), args.case, args.seed)
        print(f"{done}: {name}, {sum(map(len, [data] if isinstance(data, bytes) else data.values()))} bytes")
        if args.write:
            args.write.mkdir(parents=True, exist_ok=True)
            put(args.write, name, data)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            print(fuzz.examine(put(Path(folder), name, data)))
        return 0
    count, seconds = (FOR_EVER, args.minutes * 60) if args.minutes else (args.count, math.inf)
    return report(fuzz, run(fuzz, count, args.seed, args.workers, seconds), count, args.seed, args.keep)
