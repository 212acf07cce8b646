"""Every metric: its name, unit and title. A new one is an entry here.

Units are those inside: shares in [0, 1], times in ns, sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str  # share, B, B/s, W, J, degC, MHz, ns, cores, count, mask, /s
    title: str


_ALL = (
    # NVML, per device. The driver's own averaging applies: see definitions, live signals.
    Metric("gpu.util", "share", "utilization"),
    Metric("gpu.mem_util", "share", "memory controller"),
    Metric("gpu.mem_used", "B", "used"),
    Metric("gpu.mem_reserved", "B", "reserved by the driver"),
    Metric("gpu.mem_free", "B", "free"),
    Metric("gpu.power", "W", "power"),
    Metric("gpu.energy", "J", "energy"),
    Metric("gpu.temperature", "degC", "temperature"),
    Metric("gpu.clock_sm", "MHz", "SM clock"),
    Metric("gpu.clock_mem", "MHz", "memory clock"),
    Metric("gpu.throttle", "mask", "throttle reasons"),
    # The driver's own samples, at its rate and with its time stamps.
    Metric("gpu.util_samples", "share", "utilization, as sampled"),
    Metric("gpu.power_samples", "W", "power, as sampled"),
    # GPM: averages over the time between two readings.
    Metric("gpu.sm_active", "share", "SM activity"),
    Metric("gpu.sm_occupancy", "share", "SM occupancy"),
    Metric("gpu.tensor_active", "share", "tensor activity"),
    Metric("gpu.dram_active", "share", "DRAM bandwidth"),
    Metric("gpu.fp64_active", "share", "FP64 pipe"),
    Metric("gpu.fp32_active", "share", "FP32 pipe"),
    Metric("gpu.fp16_active", "share", "FP16 pipe"),
    Metric("gpu.nvlink_rx", "B/s", "NVLink to the GPU"),
    Metric("gpu.nvlink_tx", "B/s", "NVLink from the GPU"),
    # By GPM where it counts them, else of 20 ms of each second: the track's method tells.
    Metric("gpu.pcie_rx", "B/s", "PCIe to the GPU"),
    Metric("gpu.pcie_tx", "B/s", "PCIe from the GPU"),
    Metric("gpu.pcie_both", "B/s", "PCIe, both directions"),  # all that AMD SMI tells
    # Health. Error counts are since the driver was loaded; of the link what it runs at now.
    Metric("gpu.pcie_gen", "count", "PCIe generation"),
    Metric("gpu.pcie_width", "count", "PCIe lanes"),
    Metric("gpu.nvlinks", "count", "NVLinks up"),
    Metric("gpu.ecc_corrected", "count", "corrected memory errors"),
    Metric("gpu.ecc_uncorrected", "count", "uncorrected memory errors"),
    Metric("gpu.rows_replaced", "count", "replaced rows of memory"),
    Metric("gpu.rows_pending", "count", "rows that wait for a reset"),
    Metric("gpu.rows_failed", "count", "rows that could not be replaced"),
    Metric("gpu.xid", "count", "driver error (XID)"),
    Metric("gpu.processes", "count", "processes"),
    Metric("gpu.other_processes", "count", "processes of others"),
    Metric("gpu.process_mem", "B", "memory by process"),  # index: pid
    Metric("gpu.process_util", "share", "utilization by process"),  # index: pid
    # psutil, of the machine (per core: index) and of the target's tree.
    Metric("host.cpu", "share", "CPU"),
    Metric("host.core", "share", "CPU core"),
    Metric("host.mem_used", "B", "memory used"),
    Metric("host.disk_read", "B/s", "disk read"),
    Metric("host.disk_write", "B/s", "disk write"),
    Metric("host.net_recv", "B/s", "network received"),
    Metric("host.net_sent", "B/s", "network sent"),
    Metric("target.cpu", "cores", "CPU of the target"),
    Metric("target.mem_rss", "B", "memory of the target"),
    Metric("target.processes", "count", "processes of the target"),
    Metric("target.waiting", "count", "threads of the target without a core"),
    Metric("target.workers", "count", "loader workers"),
    Metric("target.workers_cpu", "cores", "CPU of loader workers"),
    # The probe, per process; one sample per step, stamped at the end of the step.
    Metric("step.index", "count", "step"),
    Metric("step.wall", "ns", "step time"),
    Metric("step.data", "ns", "data wait"),
    Metric("step.h2d", "ns", "h2d"),
    Metric("step.forward", "ns", "forward"),
    Metric("step.backward", "ns", "backward"),
    Metric("step.optimizer", "ns", "optimizer"),
    Metric("step.other", "ns", "other"),
    Metric("step.data_cpu", "ns", "CPU time of the loop's thread inside the data wait"),
    Metric("step.thread_cpu", "ns", "CPU time of the loop's thread in the step"),
    Metric("step.samples", "count", "samples"),
    Metric("step.optimizer_calls", "count", "optimizer calls"),
    Metric("step.syncs", "count", "blocking scalar reads"),
    Metric("step.sync", "ns", "time in blocking scalar reads"),
    Metric("step.flags", "mask", "flags"),
    # CUDA events between stage boundaries, and how far the device is behind the host.
    Metric("step.device_h2d", "ns", "h2d on the device"),
    Metric("step.device_forward", "ns", "forward on the device"),
    Metric("step.device_backward", "ns", "backward on the device"),
    Metric("step.device_optimizer", "ns", "optimizer on the device"),
    Metric("step.lag_data", "ns", "device lag at the start of the data wait"),
    Metric("step.lag_h2d", "ns", "device lag at the start of h2d"),
    Metric("step.lag_forward", "ns", "device lag at the start of forward"),
    Metric("step.lag_backward", "ns", "device lag at the start of backward"),
    Metric("step.lag_optimizer", "ns", "device lag at the start of the optimizer"),
    # Of the loop's thread as the system counts, means since the reading before.
    Metric("loop.system", "share", "loop in the kernel"),
    Metric("loop.waiting", "share", "loop waits for a core"),
    Metric("loop.faults", "/s", "page faults of the loop"),
    Metric("loop.switches", "/s", "loop put off its core"),
    Metric("torch.mem_allocated", "B", "allocated by torch"),
    Metric("torch.mem_reserved", "B", "reserved by torch"),
    Metric("torch.mem_peak", "B", "peak allocated by torch"),
    Metric("torch.mem_split", "B", "reserved in pieces that fit no other request"),
    # Sums since the start of the process; of batches a sample at each shape that was not there before.
    Metric("torch.alloc_retries", "count", "allocator out of memory and asking again"),
    Metric("torch.driver_calls", "count", "memory calls of the allocator"),
    Metric("torch.ooms", "count", "out-of-memory errors of torch"),
    Metric("torch.copies", "count", "copies to the device"),
    Metric("torch.copied", "B", "copied to the device"),
    Metric("torch.graphs", "count", "graphs compiled"),
    Metric("torch.compile_time", "ns", "time in compilation"),
    Metric("batch.shapes", "count", "shapes of training batches"),
    # The recorder on itself.
    Metric("recorder.lateness", "ns", "lateness of ticks"),
    Metric("recorder.cpu", "share", "CPU of the recorder"),
    Metric("recorder.dropped", "count", "dropped records"),
    Metric("recorder.missed", "count", "missed ticks"),
)

METRICS: dict[str, Metric] = {m.name: m for m in _ALL}


def stage_title(stage: str) -> str:
    """What a stage is called where people read it: "data wait" for data."""
    metric = METRICS.get(f"step.{stage}")
    return metric.title if metric else stage
