"""The NVML library: loading it, what its failures mean, starting it again after a shutdown."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

# NVML's return codes, as far as they are told apart.
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 2, 3, 4, 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED, TIMEOUT, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 9, 10, 12, 13
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, ARGUMENT_VERSION, UNKNOWN = 15, 16, 18, 25, 999

# code of the failed start -> (cause, what happened, what to do)
STATES: dict[int, tuple[str, str, str]] = {
    LIBRARY_NOT_FOUND: (
        "no_library", "No NVIDIA driver library (libnvidia-ml.so.1) on this machine",
        "With an NVIDIA GPU: install its driver; in a container: start it with --gpus all"),
    DRIVER_NOT_LOADED: (
        "driver_not_loaded", "The NVIDIA kernel driver is not loaded",
        "Load it (sudo modprobe nvidia), or reboot if the driver was just installed"),
    VERSION_MISMATCH: (
        "mismatch", "The NVIDIA driver and its library have different versions",
        "The driver was updated while the old one runs: reboot, or unload and load the nvidia modules"),
    NO_PERMISSION: (
        "no_permission", "No permission to ask the NVIDIA driver",
        "Give this user access to /dev/nvidiactl and /dev/nvidia*, in a container pass the devices in"),
}  # fmt: skip
GOOD = {"state": "ok", "cause": "", "reason": "", "hint": ""}
NO_BINDING = ("no_binding", "The Python package nvidia-ml-py is not usable",
              "Install it: pip install nvidia-ml-py")  # fmt: skip
NO_DEVICES = ("no_devices", "The NVIDIA driver runs and shows no GPU",
              "Check nvidia-smi, CUDA devices passed to the container, and the kernel log")  # fmt: skip

_REASONS = {
    UNINITIALIZED: "the library was shut down",
    NOT_SUPPORTED: "not supported by this device or driver",
    NO_PERMISSION: "no permission",
    FUNCTION_NOT_FOUND: "the driver is too old for it",
    ARGUMENT_VERSION: "the driver is too old for it",
    GPU_IS_LOST: "it fell off the bus or was taken away",
    RESET_REQUIRED: "it needs a reset",
    UNKNOWN: "the driver answers 'unknown error'",
}
LOST = (GPU_IS_LOST, RESET_REQUIRED)
LASTING = {NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, ARGUMENT_VERSION}


def absent(cause: str, reason: str, hint: str) -> dict[str, str]:
    """What a run's meta says, and `describe`, where there is nothing to ask. GOOD where there is."""
    return {"state": "absent", "cause": cause, "reason": reason, "hint": hint}


class Missing(Exception):
    """A call that succeeded and whose answer says that there is no value. The text is the reason."""


def code_of(error: Exception) -> int | None:
    """NVML's return code of an error of the binding; None when it is something else."""
    if type(error).__name__ == "NVMLLibraryMismatchError":
        return FUNCTION_NOT_FOUND
    value = getattr(error, "value", None)
    return value if isinstance(value, int) else None


def reason(error: Exception) -> str:
    """Why a call gave no value, in words."""
    if isinstance(error, Missing):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "the driver's answer is no valid text"
    code = code_of(error)
    if code in _REASONS:
        return _REASONS[code]
    if code is not None:
        return f"the driver answers '{error}' ({code})"
    return f"{type(error).__name__}: {error}"


def is_lasting(error: Exception) -> bool:
    """Whether asking again soon is pointless."""
    return isinstance(error, Missing) or code_of(error) in LASTING


class Library:
    """NVML of this process. Used by several sources; the last one to leave shuts it down.

    `epoch` grows when it was started anew: handles of an earlier epoch are void.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.nvml: Any = None  # the module pynvml
        self._users = 0
        self._restart_from = 0.0
        self._lock = threading.Lock()

    def start(self) -> tuple[str, str, str] | None:
        """Load and initialise. None, or (cause, reason, hint) of what is wrong."""
        with self._lock:
            if self._users == 0:
                if (wrong := self._start()) is not None:
                    return wrong
                self.epoch += 1
            self._users += 1
            return None

    def _start(self) -> tuple[str, str, str] | None:
        try:
            import pynvml
        except Exception as error:  # another package of that name may do anything
            return NO_BINDING[0], f"{NO_BINDING[1]}: {error}", NO_BINDING[2]
        self.nvml = pynvml
        try:
            pynvml.nvmlInit()
        except Exception as error:
            return STATES.get(code_of(error) or 0) or (
                "unknown", f"The NVIDIA driver does not answer: {reason(error)}",
                "Check that nvidia-smi works, and the kernel log")  # fmt: skip
        return None

    def restart(self, epoch: int) -> bool:
        """Initialise anew after Uninitialized, unless another thread has done so since `epoch`.

        Whether there is a new epoch. At most once a minute: where it does not help, it harms.
        """
        with self._lock:
            if self.epoch == epoch and time.monotonic() >= self._restart_from:
                self._restart_from = time.monotonic() + 60.0
                with suppress(Exception):
                    self.nvml.nvmlInit()
                    self.epoch += 1
            return self.epoch != epoch

    def leave(self) -> None:
        with self._lock:
            if self._users:
                self._users -= 1
                if self._users == 0:
                    with suppress(Exception):
                        self.nvml.nvmlShutdown()
