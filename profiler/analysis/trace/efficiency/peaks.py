"""Dense peaks of devices by data type, from their makers' data sheets. Definitions, section 8.

Matrix units where they take the type, accumulating in fp32 as PyTorch does; never the figures "with
sparsity". A device that is not listed has no peak, and nothing is estimated for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Peak:
    """One model of a device. `units`: multiprocessors or compute units of the whole of it."""

    device: str
    tflops: Mapping[str, float]   # TFLOP/s by data type: fp64, fp32, tf32, fp16, bf16, fp8, int8
    bandwidth: float              # of its memory, GB/s
    source: str
    units: int


def _nvidia(device: str, units: int, bandwidth: float, source: str, **tflops: float) -> Peak:
    return Peak(device, tflops, bandwidth, f"NVIDIA, {source}", units)


def _amd(device: str, units: int, bandwidth: float, source: str, **tflops: float) -> Peak:
    return Peak(device, tflops, bandwidth, f"AMD, {source}", units)


_GA100 = {"fp64": 19.5, "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0, "int8": 624.0}
_GH100 = {"fp64": 66.9, "fp32": 66.9, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9,
          "int8": 1978.9}
_A100 = "A100 Tensor Core GPU data sheet"
_H100 = "H100 Tensor Core GPU data sheet (half of the figures with sparsity)"
_V100 = "Tesla V100 data sheet"
_TURING = "Turing architecture white paper (fp16 with fp32 accumulate, reference boards)"
_GA102 = "Ampere GA102 architecture white paper (fp16 with fp32 accumulate)"
_ADA = "Ada architecture white paper (fp16 with fp32 accumulate)"

# The first pattern that is found in the device's name, without case.
_DEVICES: tuple[tuple[str, Peak], ...] = (
    (r"\bB200\b", _nvidia("B200", 148, 8000,
        "Blackwell architecture technical brief (HGX, 1000 W)", fp64=40, fp32=80, tf32=1100, fp16=2250,
        bf16=2250, fp8=4500, int8=4500)),
    (r"\bH200 NVL\b", _nvidia("H200 NVL", 132, 4800,
        "H200 data sheet (half of the figures with sparsity)", fp64=60, fp32=60, tf32=417.5, fp16=835.5,
        bf16=835.5, fp8=1670.5, int8=1670.5)),
    (r"\bH200\b", _nvidia("H200 SXM", 132, 4800,
        "H200 data sheet (half of the figures with sparsity)", **_GH100)),
    (r"\bH100 NVL\b", _nvidia("H100 NVL", 132, 3900,
        _H100, fp64=60, fp32=60, tf32=417.5, fp16=835.5, bf16=835.5, fp8=1670.5, int8=1670.5)),
    (r"\bH100 PCIe\b", _nvidia("H100 PCIe", 114, 2000,
        _H100, fp64=51, fp32=51, tf32=378, fp16=756, bf16=756, fp8=1513, int8=1513)),
    (r"\bH100 (80GB HBM3|SXM5?)\b", _nvidia("H100 SXM", 132, 3350, _H100, **_GH100)),
    (r"\bA100.*\bPCIE?.*80GB|\bA100 80GB PCIe", _nvidia("A100 PCIe 80 GB", 108, 1935, _A100, **_GA100)),
    (r"\bA100.*80GB", _nvidia("A100 SXM 80 GB", 108, 2039, _A100, **_GA100)),
    (r"\bA100\b", _nvidia("A100 40 GB", 108, 1555, _A100, **_GA100)),
    (r"\bA30\b", _nvidia("A30", 56, 933,
        "A30 data sheet", fp64=10.3, fp32=10.3, tf32=82, fp16=165, bf16=165, int8=330)),
    (r"\bA40\b", _nvidia("A40", 84, 696,
        "A40 data sheet", fp32=37.4, tf32=74.8, fp16=149.7, bf16=149.7, int8=299.3)),
    (r"\bA10\b", _nvidia("A10", 72, 600,
        "A10 data sheet", fp32=31.2, tf32=62.5, fp16=125, bf16=125, int8=250)),
    (r"\bRTX A6000\b", _nvidia("RTX A6000", 84, 768,
        "Ampere GA102 architecture white paper", fp32=38.7, tf32=77.4, fp16=154.8, bf16=154.8, int8=309.7)),
    (r"\bL40S\b", _nvidia("L40S", 142, 864,
        "L40S data sheet", fp32=91.6, tf32=183, fp16=362, bf16=362, fp8=733, int8=733)),
    (r"\bL40\b", _nvidia("L40", 142, 864,
        "L40 data sheet", fp32=90.5, tf32=90.5, fp16=181, bf16=181, fp8=362, int8=362)),
    (r"\bL4\b", _nvidia("L4", 58, 300,
        "L4 data sheet (half of the figures with sparsity)", fp32=30.3, tf32=60, fp16=121, bf16=121,
        fp8=242.5, int8=242.5)),
    (r"\bRTX 6000 Ada\b", _nvidia("RTX 6000 Ada", 142, 960,
        "RTX 6000 Ada data sheet", fp32=91.1, tf32=182.1, fp16=364.2, bf16=364.2, fp8=728.5, int8=728.5)),
    (r"\bV100S\b", _nvidia("V100S", 80, 1134, _V100, fp64=8.2, fp32=16.4, fp16=130)),
    (r"\bV100-(SXM|DGXS)", _nvidia("V100 SXM2", 80, 900, _V100, fp64=7.8, fp32=15.7, fp16=125)),
    (r"\bV100-PCIE", _nvidia("V100 PCIe", 80, 900, _V100, fp64=7.0, fp32=14.0, fp16=112)),
    (r"\bP100-SXM", _nvidia("P100 SXM2", 56, 732, "Tesla P100 data sheet", fp64=5.3, fp32=10.6, fp16=21.2)),
    (r"\bP100-PCIE-16GB", _nvidia("P100 PCIe", 56, 732,
        "Tesla P100 data sheet", fp64=4.7, fp32=9.3, fp16=18.7)),
    (r"\bT4\b", _nvidia("T4", 40, 320, "T4 data sheet", fp32=8.1, fp16=65, int8=130)),
    (r"\bRTX 2080 Ti\b", _nvidia("RTX 2080 Ti", 68, 616, _TURING, fp32=13.4, fp16=53.8, int8=215.2)),
    (r"\bRTX 2080( with|$)", _nvidia("RTX 2080", 46, 448, _TURING, fp32=10.1, fp16=40.3, int8=161.1)),
    (r"\bRTX 2070( with|$)", _nvidia("RTX 2070", 36, 448, _TURING, fp32=7.5, fp16=29.9, int8=119.4)),
    (r"\bRTX 3090 Ti\b", _nvidia("RTX 3090 Ti", 84, 1008,
        _GA102, fp32=40, tf32=40, fp16=80, bf16=80, int8=320)),
    (r"\bRTX 3090\b", _nvidia("RTX 3090", 82, 936, _GA102, fp32=35.6, tf32=35.6, fp16=71, bf16=71, int8=284)),
    (r"\bRTX 3080$", _nvidia("RTX 3080", 68, 760,
        _GA102, fp32=29.8, tf32=29.8, fp16=59.5, bf16=59.5, int8=238)),
    (r"\bRTX 3070$", _nvidia("RTX 3070", 46, 448,
        _GA102, fp32=20.3, tf32=20.3, fp16=40.6, bf16=40.6, int8=162.6)),
    (r"\bRTX 4090$", _nvidia("RTX 4090", 128, 1008,
        _ADA, fp32=82.6, tf32=82.6, fp16=165.2, bf16=165.2, fp8=330.3, int8=660.6)),
    (r"\bRTX 4080$", _nvidia("RTX 4080", 76, 717,
        _ADA, fp32=48.7, tf32=48.7, fp16=97.5, bf16=97.5, fp8=194.9, int8=389.9)),
    (r"\bRTX 4070 Ti$", _nvidia("RTX 4070 Ti", 60, 504,
        _ADA, fp32=40.1, tf32=40.1, fp16=80.2, bf16=80.2, fp8=160.4, int8=320.7)),
    (r"\bMI325X\b", _amd("MI325X", 304, 6000,
        "Instinct MI325X data sheet", fp64=163.4, fp32=163.4, tf32=653.7, fp16=1307.4, bf16=1307.4,
        fp8=2614.9, int8=2614.9)),
    (r"\bMI300X\b", _amd("MI300X", 304, 5300,
        "Instinct MI300X data sheet", fp64=163.4, fp32=163.4, tf32=653.7, fp16=1307.4, bf16=1307.4,
        fp8=2614.9, int8=2614.9)),
    (r"\bMI300A\b", _amd("MI300A", 228, 5300,
        "Instinct MI300A data sheet", fp64=122.6, fp32=122.6, tf32=490.3, fp16=980.6, bf16=980.6, fp8=1961.2,
        int8=1961.2)),
    (r"\bMI250X\b", _amd("MI250X, one of two dies", 110, 1638,
        "Instinct MI250X data sheet, half of the package", fp64=47.9, fp32=47.9, fp16=191.5, bf16=191.5,
        int8=191.5)),
    (r"\bMI250\b", _amd("MI250, one of two dies", 104, 1638, "Instinct MI250 data sheet, half of the package",
        fp64=45.3, fp32=45.3, fp16=181, bf16=181, int8=181)),
    (r"\bMI210\b", _amd("MI210", 104, 1638,
        "Instinct MI210 data sheet", fp64=45.3, fp32=45.3, fp16=181, bf16=181, int8=181)),
    (r"\bMI100\b", _amd("MI100", 120, 1228,
        "Instinct MI100 data sheet", fp32=46.1, fp16=184.6, bf16=92.3, int8=184.6)),
)


@dataclass(frozen=True)
class Known:
    """What is known of the device of a trace; `peak` None with the reason."""

    peak: Peak | None
    reason: str = ""
    name: str = ""


def peak(properties: Mapping[str, Any] | None) -> Known:
    """The peak of a device from its `deviceProperties`; unknown for parts of a device too (MIG)."""
    name = str((properties or {}).get("name") or "").strip()
    if not name:
        return Known(None, "the trace does not name the device")
    units = (properties or {}).get("numSms")
    if "MIG " in name:
        return Known(None, f"{name} is a part of a device", name)
    reason = f"no peak is known for {name}"
    for pattern, found in _DEVICES:
        if re.search(pattern, name, re.I):
            if not isinstance(units, int) or units in (0, found.units):
                return Known(found, "", name)
            reason = (f"{name} has {units} multiprocessors here, not the {found.units} of a whole "
                      f"{found.device}")
    return Known(None, reason, name)
