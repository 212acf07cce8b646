"""StepScope: a profiler for deep learning on GPUs. The entry point and the public Python interface.

The folders `app`, `profiler` and `workloads` have general names. Before anything
of ours is imported, the folder that holds them goes first on sys.path: then
neither a user's `profiler.py` in the working directory nor one on PYTHONPATH
takes their place.
"""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["attach", "main"]

HOME = Path(__file__).resolve().parent
if (HOME / "stepscope_files").is_dir():
    HOME = HOME / "stepscope_files"


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit status."""
    sys.path.insert(0, str(HOME))
    from profiler.cli import main as run

    return run(sys.argv[1:] if argv is None else argv)


def attach() -> bool:
    """Start the probe here, where it did not enter by itself (notebooks, `python -I`, Ray workers).

    Does nothing, and returns False, outside a recording.
    """
    probe = str(HOME / "profiler" / "probe")
    sys.path.insert(0, probe)
    try:
        import _stepscope_probe  # type: ignore[import-not-found]
    finally:
        sys.path.remove(probe)
    return bool(_stepscope_probe.start())


if __name__ == "__main__":
    sys.exit(main())
