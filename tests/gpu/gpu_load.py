"""Known work for a GPU, phase by phase, and what GPM says of each. Prints one JSON line last.

    gpu_load.py [DEVICE] [SECONDS]

Phases: idle; a product of large bfloat16 matrices, which tensor cores do; a copy inside the
device, which the memory does; copies to the device from pinned memory, which PCIe does. GPM is
read here as its documentation says, beside whatever the recorder reads.
"""

import json
import sys
import time

import torch

device = torch.device((sys.argv[1:] or ["cuda"])[0])
SECONDS = float((sys.argv[2:] or ["1.0"])[0])
CUDA = device.type == "cuda"
METRICS = {"sm": "SM_UTIL", "occupancy": "SM_OCCUPANCY", "tensor": "ANY_TENSOR_UTIL", "dram": "DRAM_BW_UTIL",
           "fp32": "FP32_UTIL", "pcie_to_gpu": "PCIE_RX_PER_SEC", "pcie_from_gpu": "PCIE_TX_PER_SEC"}


class Gpm:
    """Averages between two moments, in per cent, and MiB/s for PCIe. `absent` says why there is none."""

    def __init__(self):
        self.absent = ""
        try:
            import pynvml

            self.nvml = pynvml
            pynvml.nvmlInit()
            index = torch.cuda.current_device() if CUDA else 0
            uuid = str(torch.cuda.get_device_properties(index).uuid) if CUDA else ""
            self.handle = (pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}") if uuid
                           else pynvml.nvmlDeviceGetHandleByIndex(0))
            if not pynvml.nvmlGpmQueryDeviceSupport(self.handle).isSupportedDevice:
                self.absent = "this GPU has no GPM"
        except Exception as error:
            self.absent = f"{type(error).__name__}: {error}"

    def sample(self):
        if self.absent:
            return None
        return self.nvml.nvmlGpmSampleGet(self.handle, self.nvml.nvmlGpmSampleAlloc())

    def between(self, a, b):
        if a is None or b is None:
            return {}
        asked = self.nvml.c_nvmlGpmMetricsGet_t()
        asked.version = self.nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(METRICS)
        asked.sample1, asked.sample2 = a, b
        for place, name in enumerate(METRICS.values()):
            asked.metrics[place].metricId = getattr(self.nvml, f"NVML_GPM_METRIC_{name}")
        self.nvml.nvmlGpmMetricsGet(asked)
        for sample in (a, b):
            self.nvml.nvmlGpmSampleFree(sample)
        return {name: asked.metrics[place].value for place, name in enumerate(METRICS)
                if asked.metrics[place].nvmlReturn == 0}


def work():
    """The phases: what each does again and again."""
    size = 8192 if CUDA else 64
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    big = torch.empty((1 << 30) if CUDA else 1 << 16, dtype=torch.uint8, device=device)
    to = torch.empty_like(big)
    pinned = torch.empty((1 << 28) if CUDA else 1 << 16, dtype=torch.uint8, pin_memory=CUDA)
    return {"idle": lambda: time.sleep(0.01), "matmul": lambda: a @ a, "copy": lambda: to.copy_(big),
            "transfer": lambda: to[:len(pinned)].copy_(pinned, non_blocking=True)}


def synchronise():
    if CUDA:
        torch.cuda.synchronize()


gpm, told = Gpm(), {}
for phase, once in work().items():
    once()
    synchronise()
    first, begin = gpm.sample(), time.time()
    while time.time() - begin < SECONDS:
        for _ in range(4):
            once()
        synchronise()
    told[phase] = {"t0": begin, "t1": time.time(), "gpm": gpm.between(first, gpm.sample())}
print(json.dumps({"absent": gpm.absent, "phases": told}))
