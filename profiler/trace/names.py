"""What a name says: each rule here looks at one text, and is applied once a name, not once an event."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from profiler.trace.model import Codes, Small

T = TypeVar("T")


class Call(IntEnum):
    """What a runtime or driver call does."""

    OTHER = 0
    LAUNCH = 1        # a kernel
    GRAPH = 2         # a graph
    MEMCPY = 3
    MEMSET = 4
    ALLOCATOR = 5
    SYNC = 6          # blocks until stream, event or device is done
    RECORD = 7        # event record
    WAIT = 8          # a stream waits for an event


class Copy(IntEnum):
    """Direction and host memory of a copy."""

    OTHER = 0
    H2D_PAGEABLE = 1
    H2D_PINNED = 2
    H2D = 3           # host memory not told
    D2H_PAGEABLE = 4
    D2H_PINNED = 5
    D2H = 6
    D2D = 7
    P2P = 8


_CALLS = (
    (re.compile(r"^(cu|hip|cuda)LaunchHostFunc", re.I), Call.OTHER),  # a callback of the host, no kernel
    (re.compile(r"^(cu|hip|cuda)\w*GraphLaunch", re.I), Call.GRAPH),
    (re.compile(r"^(cuda|cu|hip|hipExt|hipModule|hipExtModule|hipHcc)\w*Launch\w*(Kernel|Ex|ExC|Device)|"
                r"^cuLaunch|^hipLaunch|^cudaLaunch", re.I), Call.LAUNCH),
    (re.compile(r"^(cuda|cu|hip)\w*(StreamSynchronize|DeviceSynchronize|CtxSynchronize|EventSynchronize|"
                r"ThreadSynchronize)", re.I), Call.SYNC),
    (re.compile(r"^(cuda|cu|hip)\w*StreamWaitEvent", re.I), Call.WAIT),
    (re.compile(r"^(cuda|cu|hip)\w*EventRecord", re.I), Call.RECORD),
    (re.compile(r"^(cuda|cu|hip)(Malloc|Free|HostAlloc|ExtMalloc|Mem(Alloc|Free|HostAlloc|Create|Release|Map|"
                r"Unmap|AddressReserve|AddressFree|SetAccess)|HostMalloc|HostFree|HostRegister|HostUnregister|"
                r"MemHostRegister|MemHostUnregister|MemPool)", re.I), Call.ALLOCATOR),
    (re.compile(r"^(cuda|cu|hip)\w*(Memcpy|Copy(Peer|HtoD|DtoH|DtoD))", re.I), Call.MEMCPY),
    (re.compile(r"^(cuda|cu|hip)\w*Mem(set|SetD)", re.I), Call.MEMSET),
    # Intel's Unified Runtime and Level Zero
    (re.compile(r"^ur\w*KernelLaunch|^zeCommandListAppendLaunch\w*Kernel"), Call.LAUNCH),
    (re.compile(r"^ur(EventWait$|QueueFinish)|^ze(Command(Queue|List)\w*|EventHost|FenceHost)Synchronize"),
     Call.SYNC),
    (re.compile(r"^urUSM(\w*Alloc|Free)|^ze(Virtual)?Mem(Alloc|Free)"), Call.ALLOCATOR),
    (re.compile(r"^urEnqueue(USMMemcpy|MemBuffer(Copy|Read|Write))|^zeCommandListAppendMemoryCopy"),
     Call.MEMCPY),
    (re.compile(r"^urEnqueue(USM|MemBuffer)Fill|^zeCommandListAppendMemoryFill"), Call.MEMSET),
)
_COMMUNICATION = re.compile(r"[nrh]ccl|nvshmem|msccl|oneccl|\bcross_device_reduce|allreduce_|"
                            r"all_gather_into|(one|two)_?shot_?all_?reduce|multimem_|\bdeep_?ep\b", re.I)
LOADER = re.compile(r"enumerate\(DataLoader\)|DataLoaderIter\.__next__", re.I)
STEP = re.compile(r"^ProfilerStep\s*#\s*(\d{1,18})$")
OPTIMIZER = re.compile(r"^Optimizer\.step\b")
AUTOGRAD = re.compile(r"Backward\d*$|^(torch::autograd::)?AccumulateGrad$|^autograd::engine|"
                      r"^torch::autograd::")
# What frameworks write themselves: it says nothing that the user put there.
FRAMEWORK = re.compile(r"^\W*(DistributedDataParallel|DDP\b|FSDP|FullyShardedDataParallel|DeepSpeed|nccl|"
                       r"gloo|c10d|Optimizer\b|ProfilerStep|forward|backward|autograd|enumerate\(DataLoader|"
                       r"Torch-Compiled|TorchDynamo|CompiledFx|Call CompiledFx|CompiledFunction|Inductor|AOT|"
                       r"Pregraph|Iteration\b|PyTorch Profiler|Activity Buffer|"
                       r"[a-z]?ccl:|ucc:|mpi:|.*\(dynamo_timed\))", re.I)
_SAVES = r"checkpoint|sav(e|es|ed|er|ing)(?![a-z])"
NAMED_WORK = re.compile(_SAVES + r"|(?<![a-z])(log(s|ged|ger|gers|ging)?|"
                        r"eval(s|uat\w*)?|valid(s|at\w*)?|gc|garbage)(?![a-z])", re.I)
SAVING = re.compile(_SAVES, re.I)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def call(name: str) -> Call:
    for pattern, kind in _CALLS:
        if pattern.search(name):
            return kind
    return Call.OTHER


def is_communication(name: str) -> bool:
    """A kernel of NCCL, RCCL and kin."""
    return bool(_COMMUNICATION.search(name))


def is_loader(name: str) -> bool:
    """The annotation that torch puts around the loader's `__next__`."""
    return bool(LOADER.search(name))


def step_number(name: str) -> int:
    """N of ProfilerStep#N; -1 for any other name, and for a number that no loop reaches."""
    found = STEP.match(name)
    return int(found.group(1)) if found else -1


def is_optimizer(name: str) -> bool:
    """The annotation that torch puts around an optimizer's `step`."""
    return bool(OPTIMIZER.match(name))


def is_autograd(name: str) -> bool:
    """A node of the backward graph, or the engine's frame around one."""
    return bool(AUTOGRAD.search(name))


def is_framework(name: str) -> bool:
    """An annotation that frameworks write: DistributedDataParallel.forward, nccl:all_reduce, forward, ..."""
    return bool(FRAMEWORK.match(name))


def is_named_work(name: str) -> bool:
    """An annotation that speaks of checkpoints, saving, logging, evaluation or garbage collection."""
    return not is_framework(name) and bool(NAMED_WORK.search(_CAMEL.sub("_", name)))


def is_saving(name: str) -> bool:
    """An annotation that speaks of checkpoints or saving."""
    return not is_framework(name) and bool(SAVING.search(_CAMEL.sub("_", name)))


def copy(name: str) -> Copy:
    """From Kineto's names: "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice", "Memcpy DtoD", ..."""
    text = name.lower().replace(" ", "")
    if "htod" in text or "hosttodevice" in text:
        return Copy.H2D_PAGEABLE if "pageable" in text else Copy.H2D_PINNED if "pinned" in text else Copy.H2D
    if "dtoh" in text or "devicetohost" in text:
        return Copy.D2H_PAGEABLE if "pageable" in text else Copy.D2H_PINNED if "pinned" in text else Copy.D2H
    if "ptop" in text or "peer" in text:
        return Copy.P2P
    if "dtod" in text or "devicetodevice" in text:
        return Copy.D2D
    return Copy.OTHER


def per_name(names: tuple[str, ...], column: Codes, rule: Callable[[str], int],
             none: int = 0) -> NDArray[np.int64]:
    """`rule` of the text of every row: int64[n], `none` where the row has no text. One call a name."""
    return answers(names, codes(names, column), rule, none)[column]


def codes(names: tuple[str, ...], column: Codes) -> Codes:
    """Every text that occurs in a column, once."""
    used = np.zeros(len(names) + 1, np.bool_)  # the last entry is that of -1
    used[column] = True
    return np.flatnonzero(used[:-1]).astype(np.int32)


def answers(names: tuple[str, ...], among: Codes, rule: Callable[[str], int], none: int) -> NDArray[np.int64]:
    """`rule` of each of these texts at its code, `none` at all others and at -1: int64[names + 1]."""
    table = np.full(len(names) + 1, none, np.int64)
    table[among] = [int(rule(names[code])) for code in among.tolist()]
    return table


def calls(names: tuple[str, ...], column: Codes, kind: Small, wanted: tuple[int, ...]) -> NDArray[np.int64]:
    """Call of every row whose kind is in `wanted`; Call.OTHER for the others."""
    rows = np.isin(kind, wanted)
    result = np.zeros(len(column), np.int64)
    result[rows] = per_name(names, column[rows], call)
    return result
