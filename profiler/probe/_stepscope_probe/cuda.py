"""What is read of CUDA now and then, once the user's code has initialised it: devices and memory."""

import json

import torch

from .sites import user_site


def torch_record():
    """The versions, and the devices once CUDA is initialised; asking earlier would initialise it."""
    said = {"version": str(torch.__version__), "cuda": torch.version.cuda, "device_count": None, "uuid": {}}
    hip = getattr(torch.version, "hip", None)
    if hip is not None:
        said["hip"] = str(hip)
    if torch.cuda.is_initialized():
        said["device_count"] = torch.cuda.device_count()
        for i in range(said["device_count"]):
            uuid = getattr(torch.cuda.get_device_properties(i), "uuid", None)
            if uuid is not None:
                said["uuid"][str(i)] = _named(str(uuid))
    return json.dumps(["torch", said]) + "\n"


def _named(uuid):
    return uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid


class Memory:
    """One record per device on which this process has memory reserved.

    Bytes: allocated, reserved, peak; how often the allocator gave everything back and asked again, how
    often memory ran out; bytes of reserved pieces that nothing but their own kind of request can use;
    how often the allocator has asked the driver for memory or given some back (null in older versions).
    """

    name = "memory"

    def __init__(self, probe):
        self.probe = probe
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self.ran_out)  # for good: torch has no way to take one back

    def ran_out(self, device, requested, total, free, *_):
        """torch's allocator calls this where memory has run out, on the thread that asked for some."""
        try:
            text = "GPU %d ran out of memory: %.2f GiB asked for, %.2f of %.2f GiB free" % (
                device, requested / 2**30, free / 2**30, total / 2**30)
            self.probe.event("out_of_memory", "error", text, {
                "device": device, "requested": requested, "total": total, "free": free, "site": user_site()})
        except Exception:  # never into the allocator
            pass

    def records(self, now):
        for i in range(torch.cuda.device_count()):
            stats = torch.cuda.memory.memory_stats_as_nested_dict(i)
            if not stats:
                continue
            allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
            if reserved["current"]:
                split = stats.get("inactive_split_bytes", {}).get("all", {}).get("current", 0)
                calls = stats.get("num_device_alloc")
                yield '["memory",%d,%d,%d,%d,%d,%d,%d,%d,%s]\n' % (
                    now, i, allocated["current"], reserved["current"], allocated["peak"],
                    stats.get("num_alloc_retries", 0), stats.get("num_ooms", 0), split,
                    "null" if calls is None else calls + stats.get("num_device_free", 0))
