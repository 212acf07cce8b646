"""Python and the packages: what they are, without importing the heavy ones."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.doctor.base import Check
from profiler.machine import read
from profiler.visible import Card, resolve

WORKLOADS = 'Run pip install "stepscope[workloads]"'
GUI = 'Run pip install "stepscope[gui]"'
SUPPORTED_QT = "6.12"  # not itself


def rows(has_gpu: bool, cuda_driver: str | None, has_amd: bool = False) -> Iterator[Check]:
    yield Check("Python", "ok", f"{platform.python_version()}, {sys.executable}")
    folder = package_folder("torch")
    yield torch_check(folder, version_of("torch"), has_gpu, cuda_driver, has_amd)
    yield torchvision_check(version_of("torchvision"), folder is not None)
    yield traces_check(folder, cupti=cupti_version())
    yield window_check(version_of("PySide6-Essentials") or version_of("PySide6"), version_of("pyqtgraph"))
    yield sitecustomize_check(package_file("sitecustomize"))


def version_of(name: str) -> str | None:
    """The installed version of a distribution; None without one."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def package_file(name: str) -> Path | None:
    """Where a top-level module lies, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.has_location else None


def package_folder(name: str) -> Path | None:
    path = package_file(name)
    return path.parent if path is not None else None


def cupti_version() -> str | None:
    """Of the CUPTI that comes with torch from PyPI; None elsewhere (torch or the system may have one)."""
    for name in ("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu13", "nvidia-cuda-cupti-cu12"):
        if (version := version_of(name)) is not None:
            return version
    return None


def torch_build(folder: Path) -> dict[str, str | None]:
    """{version, cuda, hip} from torch/version.py, which holds plain assignments."""
    found: dict[str, str | None] = {}
    try:
        tree = ast.parse(read(folder / "version.py") or "")
    except SyntaxError:
        return {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        if isinstance(node.value, ast.Constant):
            value = node.value.value
            found |= {name.strip("_"): value if isinstance(value, str) else None for name in names}
    return {key: found.get(key) for key in ("version", "cuda", "hip")}


def torch_check(folder: Path | None, version: str | None, has_gpu: bool, cuda_driver: str | None,
                has_amd: bool = False) -> Check:
    """torch of this interpreter; a user's script may run in another. `has_gpu`: of NVIDIA."""
    if folder is None:
        return Check("PyTorch", "absent", "not installed in this interpreter; your script's may have it",
                     f"{WORKLOADS} for the workloads and the tour")
    build = torch_build(folder)
    name = build.get("version") or version or "unknown version"
    cuda = build.get("cuda")
    if build.get("hip"):
        return _rocm_check(f"{name}, ROCm {build['hip']} build", has_gpu, has_amd)
    if has_amd and not has_gpu:
        return Check("PyTorch", "warning", f"{name}, no ROCm build: it does not use the AMD GPU",
                     "Install the ROCm build: see pytorch.org/get-started")
    if cuda is None:
        if has_gpu:
            return Check("PyTorch", "warning", f"{name}, CPU build: it does not use the GPU",
                         "Install the CUDA build: see pytorch.org/get-started")
        return Check("PyTorch", "ok", f"{name}, CPU build")
    text = f"{name}, CUDA {cuda} build"
    if not has_gpu:
        return Check("PyTorch", "ok", f"{text}; without a GPU it runs on the CPU")
    if cuda_driver and _major(cuda) > _major(cuda_driver):
        return Check("PyTorch", "error", f"{text}, the driver supports CUDA up to {cuda_driver}",
                     "Update the driver, or install a build for an older CUDA")
    return Check("PyTorch", "ok", text)


def _rocm_check(text: str, has_gpu: bool, has_amd: bool) -> Check:
    if has_amd:
        return Check("PyTorch", "ok", text)
    if has_gpu:
        return Check("PyTorch", "warning", f"{text}: it does not use the NVIDIA GPU",
                     "Install the CUDA build: see pytorch.org/get-started")
    return Check("PyTorch", "ok", f"{text}; without an AMD GPU it runs on the CPU")


def usable_gpus(devices: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """{name, compute_capability} of those that torch of this interpreter sees, in the driver's order.

    That is torch's own where all are of one kind. None where it is not known: builds for
    other vendors' GPUs, or no torch.
    """
    folder = package_folder("torch")
    build = torch_build(folder) if folder is not None else {}
    if not build or build.get("hip"):
        return None
    seen = visible(devices, os.environ.get("CUDA_VISIBLE_DEVICES")) if build.get("cuda") else []
    return [{"name": device.get("name"), "compute_capability": _number(device.get("compute_capability"))}
            for device in seen]


def visible(devices: Sequence[Mapping[str, Any]], named: str | None) -> list[Mapping[str, Any]]:
    """What CUDA_VISIBLE_DEVICES leaves, taken as counting in the driver's order."""
    by_uuid = {str(device.get("uuid")): device for device in devices}
    environment = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
    shown = resolve([Card(uuid, "") for uuid in by_uuid], environment)
    return [by_uuid[uuid] for uuid in shown or ()]


def _number(text: object) -> float | None:
    try:
        return float(str(text))
    except ValueError:
        return None


def torchvision_check(version: str | None, has_torch: bool) -> Check:
    if version is not None:
        return Check("torchvision", "ok", version)
    hint = WORKLOADS if has_torch else ""
    return Check("torchvision", "absent", "not installed; image_classification needs it", hint)


def traces_check(torch_folder: Path | None, cupti: str | None) -> Check:
    """Whether torch.profiler windows can be recorded in this interpreter."""
    if torch_folder is None:
        return Check("Traces", "absent", "torch.profiler comes with PyTorch")
    if not (torch_folder / "profiler").is_dir():
        return Check("Traces", "warning", "this torch has no profiler", "Reinstall torch")
    kernels = f", GPU kernels by CUPTI {cupti}" if cupti else ""
    return Check("Traces", "ok", f"torch.profiler is there{kernels}")


def window_check(qt: str | None, pyqtgraph: str | None) -> Check:
    missing = [name for name, version in (("PySide6", qt), ("pyqtgraph", pyqtgraph)) if version is None]
    if missing:
        return Check("Window", "absent", f"{' and '.join(missing)} not installed", GUI)
    text = f"PySide6 {qt}, pyqtgraph {pyqtgraph}"
    if _numbers(qt or "") >= _numbers(SUPPORTED_QT):
        return Check("Window", "error", f"{text}: PySide6 6.12 crashes while painting",
                     'Run pip install "PySide6-Essentials<6.12"')
    return Check("Window", "ok", text)


def sitecustomize_check(path: Path | None) -> Check:
    """Ours goes first in a recorded program and then runs the one that it shadows."""
    return Check("sitecustomize", "ok", f"{path}: runs after the probe" if path else "none besides ours")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _major(version: str) -> int:
    return (_numbers(version) or (0,))[0]
