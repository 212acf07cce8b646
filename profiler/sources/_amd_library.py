"""AMD SMI: whether there is something to ask, loading it, and what its failures mean.

`Smi` answers under the few names by which Gpu and Library ask NVML, so that what is done
about a lost device or a library that was shut down is written once.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, cast

from profiler.sources._gpu import text_of
from profiler.sources._library import GPU_IS_LOST, UNINITIALIZED, Library, Missing

# AMD SMI's status codes, as far as they are told apart.
NOT_SUPPORTED, NOT_YET_IMPLEMENTED, FAIL_LOAD_SYMBOL, NO_PERM = 2, 3, 5, 10
INIT_ERROR, NOT_INIT, NO_DRIVER, NO_DATA = 18, 32, 34, 40

NOT_TOLD = "the driver does not tell it (N/A)"
LASTING = {
    NOT_SUPPORTED: "not supported by this device or driver",
    NOT_YET_IMPLEMENTED: "not supported by this device or driver",
    FAIL_LOAD_SYMBOL: "the driver's library is too old for it",
    NO_PERM: "no permission",
    NO_DATA: NOT_TOLD,
}
MEANS = {NOT_INIT: UNINITIALIZED, NO_DRIVER: GPU_IS_LOST}  # as codes of NVML
NONE = {0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF}  # all bits set: how the driver says that there is no value

PACKAGE = "amdsmi"
MATCHING = ("Install the one of this machine's ROCm: pip install /opt/rocm/share/amd_smi; "
            "pip install amdsmi also works where the versions match")
NO_BINDING = ("no_binding", "There is an AMD GPU, and the Python package amdsmi is not usable", MATCHING)
NO_DRIVER_LOADED = ("driver_not_loaded", "The AMD GPU driver (amdgpu) is not loaded",
                    "Load it (sudo modprobe amdgpu), in a container pass /dev/kfd and /dev/dri in")
NO_DEVICES = ("no_devices", "The AMD GPU driver runs and shows no GPU",
              "Check amd-smi list, and give this user access to /dev/kfd and /dev/dri (group render)")
NO_GPU = ("no_devices", "No GPU was found: there is no NVIDIA driver, and amdsmi shows no AMD GPU",
          "With a GPU: install its driver; in a container: pass its devices in")
UNKNOWN_HINT = "Check that amd-smi works, and the kernel log"


class AmdError(Exception):
    """A call that failed. `value`: NVML's code of the same meaning, else AMD SMI's code, below zero."""

    def __init__(self, text: str, value: int) -> None:
        super().__init__(text)
        self.value = value


def code_of(error: Exception) -> int | None:
    """AMD SMI's status code of an error of the binding; None when it is something else."""
    code = getattr(error, "err_code", None)
    return abs(code) if isinstance(code, int) else None


def told(error: Exception) -> Exception:
    """The error as Reading understands it: lasting ones are Missing."""
    code = code_of(error)
    if code in LASTING:
        return Missing(LASTING[code])
    if code is not None:
        info = str(getattr(error, "err_info", "") or "unknown error")
        return AmdError(info.partition(" - ")[2].strip() or info, MEANS.get(code, -code))
    if isinstance(error, AttributeError):
        return Missing("the installed amdsmi is too old for it")
    return error


class Asked:
    """One processor of AMD SMI. Fields of one tick that need the same answer share one call.

    `turn` is raised at each tick; an answer, or a failure, is kept for the turn that it was asked in.
    """

    def __init__(self, smi: Any, handle: Any) -> None:
        self.smi = smi  # the module amdsmi
        self.handle = handle
        self.turn = 0
        self._kept: dict[str, tuple[int, Any, Exception | None]] = {}

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Raises Missing or AmdError, or what the package itself raises."""
        try:
            return getattr(self.smi, name)(self.handle, *arguments)
        except Exception as error:
            raise told(error) from error

    def once(self, name: str) -> Any:
        """The same, at most once in a turn."""
        turn, kept = self.turn, self._kept.get(name)
        if kept is None or kept[0] != turn:
            answer, failure = None, None
            try:
                answer = self(name)
            except Exception as error:
                failure = error
            kept = self._kept[name] = turn, answer, failure
        if kept[2] is not None:
            raise kept[2]
        return kept[1]

    def enum(self, kind: str, member: str) -> Any:
        """A member of one of the module's enumerations. Missing where the package is too old for it."""
        try:
            return getattr(getattr(self.smi, kind), member)
        except AttributeError as error:
            raise told(error) from error


class Smi:
    """AMD SMI under NVML's names for: start, end, devices, their UUID and name."""

    def __init__(self, smi: Any) -> None:
        self.smi = smi

    def nvmlInit(self) -> None:
        self.smi.amdsmi_init(self.smi.AmdSmiInitFlags.INIT_AMD_GPUS)

    def nvmlShutdown(self) -> None:
        self.smi.amdsmi_shut_down()

    def nvmlDeviceGetCount(self) -> int:
        return len(self.smi.amdsmi_get_processor_handles())

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Asked:
        return Asked(self.smi, self.smi.amdsmi_get_processor_handles()[index])

    def nvmlDeviceGetUUID(self, asked: Asked) -> str:
        """With the partition's number behind it: parts of one card may share their UUID."""
        uuid = text_of(asked, "amdsmi_get_gpu_device_uuid")
        part = partition(asked)
        return f"{uuid}/{part}" if uuid and part else uuid

    def nvmlDeviceGetName(self, asked: Asked) -> str:
        return named(asked("amdsmi_get_gpu_asic_info")["market_name"]) or "AMD GPU"


def named(value: Any) -> str | None:
    """A text of AMD SMI; None for what stands for none, and for what is no text."""
    return value if isinstance(value, str) and value not in ("", "N/A") else None


def partition(asked: Asked) -> int:
    """Number of the part of a split card; 0 of the first one, of a whole card, and where it is not told."""
    try:
        number = asked("amdsmi_get_gpu_kfd_info")["current_partition_id"]
    except Exception:
        return 0
    return number if isinstance(number, int) and not isinstance(number, bool) and number not in NONE else 0


class AmdLibrary(Library):
    """AMD SMI of this process; `nvml` is a Smi."""

    def _start(self) -> tuple[str, str, str] | None:
        try:
            self.nvml = Smi(_load())
        except Exception as error:  # it may be of another ROCm, or another package of that name
            return NO_BINDING[0], f"{NO_BINDING[1]}: {_why(error)}", NO_BINDING[2]
        try:
            self.nvml.nvmlInit()
        except Exception as error:
            if code_of(error) in (NO_DRIVER, INIT_ERROR):
                return NO_DRIVER_LOADED
            return "unknown", f"The AMD GPU driver does not answer: {told(error)}", UNKNOWN_HINT
        return None


def _load() -> Any:
    """The module. Without the driver's library it prints so and then fails with a KeyError."""
    if PACKAGE in sys.modules and sys.modules[PACKAGE] is not None:
        return sys.modules[PACKAGE]
    spec = package()
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("it is not installed for this Python")
    module = sys.modules[PACKAGE] = module_from_spec(spec)
    try:
        with _quiet():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[PACKAGE]
        raise
    return module


def package() -> ModuleSpec | None:
    """The package of this Python, else that of PYTHONPATH (which a process of ours ignores) or of ROCm."""
    with suppress(ImportError, ValueError):
        if (spec := find_spec(PACKAGE)) is not None:
            return spec
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rocm = os.environ.get("ROCM_PATH") or "/opt/rocm"
    return PathFinder.find_spec(PACKAGE, [*filter(None, named), f"{rocm}/share/amd_smi"])


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return "it does not find the driver's library libamd_smi.so"
    return " ".join(f"{error}".split()) or type(error).__name__


class _Elsewhere:
    """Standard output without what one thread writes: others may be telling something to the window."""

    def __init__(self, real: Any) -> None:
        self._real, self._thread = real, threading.get_ident()

    def write(self, text: str) -> Any:
        return len(text) if threading.get_ident() == self._thread else self._real.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def _quiet() -> Iterator[None]:
    real: Any = sys.stdout
    sys.stdout = cast(Any, _Elsewhere(real))
    try:
        yield
    finally:
        sys.stdout = real


def has_hardware(root: Path = Path("/sys")) -> bool:
    """Whether this machine shows an AMD GPU."""
    return any(_vendors(root, "0x1002")) or any(_kfd(root))


def has_nvidia(root: Path = Path("/")) -> bool:
    """Whether this machine shows an NVIDIA GPU, or a driver of one (WSL shows the driver alone)."""
    return any(_vendors(root / "sys", "0x10de")) or any(
        (root / path).exists() for path in ("proc/driver/nvidia", "dev/nvidiactl", "dev/dxg"))


def worth_asking() -> bool:
    """Whether there is an AMD GPU, or the package by which one would be read."""
    return has_hardware() or package() is not None


def alone() -> bool:
    """Whether AMD's are the only GPUs that this machine may have."""
    return worth_asking() and not has_nvidia()


def _vendors(root: Path, vendor: str) -> Iterator[Path]:
    """Display devices and accelerators on the bus by that vendor."""
    for path in root.glob("bus/pci/devices/*"):
        with suppress(OSError):
            kind = (path / "class").read_text().strip()
            if kind.startswith(("0x03", "0x12")) and (path / "vendor").read_text().strip() == vendor:
                yield path


def _kfd(root: Path) -> Iterator[Path]:
    """Nodes of AMD's compute driver that are GPUs."""
    for path in root.glob("class/kfd/kfd/topology/nodes/*/gpu_id"):
        with suppress(OSError):
            if path.read_text().strip() not in ("", "0"):
                yield path

