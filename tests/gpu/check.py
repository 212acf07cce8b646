"""What only a real GPU can show. It needs a CUDA GPU, torch, torchvision and what the recorder needs.

    python tests/gpu/check.py [FOLDER] [--only PART ...] [--minutes 8] [--rehearse]

Parts, in this order: loops (stage times by CUDA events and device lag against a loop's own
timers), telemetry (NVML, GPM, 10 and 100 samples a second), kept (a healthy and a starved run,
profiler windows, prediction against experiment), faults (each with its verdict), cost (of the
probe). Nothing begins once the time is up. FOLDER gets figures.json, after every part, and the
small files that are worth keeping: healthy and starved, .stepscope and .json.gz. The table comes
last. Without a GPU it exits 77 and says that nothing was tested; 1 when a line does not hold or a
part found no time. --rehearse does on the CPU what can be done there: it tests this script, not a GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cost import check_cost
from faults import check_faults
from kept import check_kept
from kit import Check, NoTimeError, own_environment
from loops import check_loops
from telemetry import check_telemetry

PARTS: dict[str, Callable[[Check], None]] = {
    "loops": check_loops, "telemetry": check_telemetry, "kept": check_kept, "faults": check_faults,
    "cost": check_cost}


def machine(check: Check) -> None:
    """The GPU, the driver and torch; exits 77 where there is no GPU."""
    facts = {"cores": os.cpu_count(), "python": sys.version.split()[0], "date": time.strftime("%Y-%m-%d")}
    check.figures["machine"] = facts
    try:
        import pynvml
        import torch

        facts |= {"torch": torch.__version__, "cuda": torch.version.cuda}
        if check.rehearsal:
            return
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)  # by NVML: torch would keep memory of the GPU
        if not torch.cuda.device_count():
            raise RuntimeError("torch sees no CUDA device")
        facts |= {"gpu": pynvml.nvmlDeviceGetName(handle), "driver": pynvml.nvmlSystemGetDriverVersion()}
    except Exception as error:
        print(f"no GPU to test on, nothing was tested: {error}")
        raise SystemExit(77) from None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="for what is kept; default: a new one")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--rehearse", action="store_true")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="stepscope-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stepscope-gpu-") as work:
        check = Check(folder.resolve(), Path(work), 60 * args.minutes, args.rehearse)
        own_environment(Path(work) / "cache")
        machine(check)
        for name in args.only:
            begin = time.monotonic()
            print(f"{name}:", flush=True)
            try:
                PARTS[name](check)
            except NoTimeError:
                check.told(name, "not finished: the time was up", False, False)
            except Exception as error:
                traceback.print_exc()
                check.told(name, f"{type(error).__name__}: {error}"[:300], False, False)
            check.figures.setdefault("seconds", {})[name] = round(time.monotonic() - begin, 1)
            check.write()
    return summary(check, time.monotonic() - began)


def summary(check: Check, seconds: float) -> int:
    """Print the table; the exit status."""
    width = max((len(what) for what, _, _ in check.table), default=0)
    words = {True: "ok  ", False: "FAIL", None: "-   "}
    print()
    for what, value, holds in check.table:
        print(f"{words[holds]}  {what:<{width}}  {value}")
    judged = [holds for _, _, holds in check.table if holds is not None]
    facts = check.figures["machine"]
    where = "rehearsal on the CPU, nothing of a GPU was tested" if check.rehearsal else facts["gpu"]
    print(f"{where}: {sum(judged)} of {len(judged)} lines hold, {seconds:.0f} s "
          f"({', '.join(f'{k} {v:.0f}' for k, v in check.figures['seconds'].items())})")
    return 0 if all(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
