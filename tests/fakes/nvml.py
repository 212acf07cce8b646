"""The stand-in NVML library for tests: how to build it, plan it and put it in a child's way.

Keys of a plan, one `KEY VALUE` a line (`KEY:INDEX VALUE` for one device): gpus, util, mem_util, power_mw,
energy_mj, temp_c, clock_sm, clock_mem, throttle, pcie_rx_kb, pcie_tx_kb, mem_total, mem_used, mem_reserved,
name, uuid, driver, cuda, procs, graphics_procs, proc_pid, proc_mem, proc_stride, pcie_block_ms,
gpm (0: not supported), gpm_sm, gpm_occupancy, gpm_tensor, gpm_hmma, gpm_dram, gpm_fp64, gpm_fp32, gpm_fp16
(per mille), gpm_rates (1: rates too), gpm_pcie_rx, gpm_pcie_tx, gpm_nvlink_rx, gpm_nvlink_tx (MiB/s),
power_limit_mw, power_default_mw, max_clock_sm, max_clock_mem, app_clock_sm, pcie_gen, pcie_width,
pcie_gen_now, pcie_width_now, pcie_gen_card (0: all that is possible), cc_major, cc_minor,
ecc_corrected, ecc_uncorrected, remap_corrected, remap_uncorrected, remap_pending, remap_failed,
xid (its number), xids (how many so far),
nvlinks, nvlinks_up, buffer_util, buffer_power_mw, buffer_count, buffer_stamp_us (of the newest sample;
0: now), buffer_period_us, mig, slices, slice_total, slice_used,
proc_use (percent), proc_use_count, proc_use_pid (of the first), proc_use_stamp_us (0: just now),
proc_use_none (the code where none did anything),
lost_init (raised: the library is uninitialised once).
card:INDEX (which card has that index), gpm_samples (lent at a time).
Errors: `ret SYMBOL CODE`, `ret@K SYMBOL CODE` (from the K-th call on), `ret_all CODE`. `delay_ms SYMBOL MS`.
`crash SYMBOL SIGNAL`, `crash@K ...`: the process dies of that signal in it.
`hang SYMBOL`: it does not return while the plan says so. `junk SYMBOL WORD`: it succeeds and answers
nonsense: ones, zeros, huge, negative, nan, inf, partial, long, short, wrong_type, no_text.
An unknown key aborts the process that reads it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parent / "nvml" / "nvml.c"
SONAME = "libnvidia-ml.so.1"
PLAN = "STEPSCOPE_FAKE_NVML_PLAN"
STATIC = "STEPSCOPE_FAKE_NVML_STATIC"  # set: the plan is read once, for benchmarks


def build(directory: Path, without: Iterable[str] = ()) -> Path:
    """Compile the library into `directory` and return that. `without`: symbols an older driver lacks."""
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "symbols"
    hidden = "".join(f"{symbol}; " for symbol in without)
    script.write_text("{ global: *; " + (f"local: {hidden}" if hidden else "") + "};\n")
    command = ["cc", "-O1", "-shared", "-fPIC", "-pthread", f"-Wl,-soname,{SONAME}", "-Wl,--version-script",
               f"-Wl,{script}", "-o", str(directory / SONAME), str(SOURCE)]  # fmt: skip
    subprocess.run(command, check=True)
    return directory


class Plan:
    """A plan file. Each change replaces it as a whole, so that no call sees half of one."""

    def __init__(self, path: Path, *lines: str) -> None:
        self.path = path
        self.lines: list[str] = []
        self.set(*lines)

    def set(self, *lines: str) -> None:
        """Put these lines in the place of all there were."""
        self.lines = list(lines)
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(self.path)

    def add(self, *lines: str) -> None:
        """Add lines; a later line wins over an earlier one with the same key."""
        self.set(*self.lines, *lines)


def environment(library: Path, plan: Plan, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a process that shall find the library in the directory `library`."""
    path = ":".join(filter(None, (str(library), base.get("LD_LIBRARY_PATH", ""))))
    return {**base, "LD_LIBRARY_PATH": path, PLAN: str(plan.path)}
