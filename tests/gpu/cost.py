"""What the probe costs a loop on a GPU, and on the CPU of the same machine."""

from __future__ import annotations

import re

from kit import ROOT, Check


def check_cost(check: Check) -> None:
    """With the probe over without, in alternating blocks of one process."""
    pairs = "4" if check.rehearsal else "100"
    for device in ("cpu",) if check.rehearsal else ("cuda", "cpu"):
        done = check.run(str(ROOT / "tests/bench/probe_cost.py"), "--device", device, "--pairs", pairs)
        text = done.stdout.strip()
        check.figures[f"probe on {device}"] = text or done.stderr[-1000:]
        found = re.search(r"with over without ([\d.]+)", text)
        check.told(f"probe on {device}", text.replace("\n", "; ") or done.stderr[-200:],
                   found is not None and float(found[1]) < 1.05)
