"""How long Live keeps the GUI thread for one repaint, and how often it repaints a growing run.

Eight GPUs, sixteen cores, 10,000 steps. Prints medians; asserts nothing: machines differ.

    python tests/bench/live_repaint.py [--seconds 5] [--steps 10000] [--gpus 8]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PySide6.QtWidgets import QApplication

from app import theme
from app.document import Document
from app.panels.live import LivePanel
from app.recorder import Recorder
from tests.app.story import Story


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--gpus", type=int, default=8)
    args = parser.parse_args()
    app = QApplication([])
    theme.apply(app, "dark")
    with tempfile.TemporaryDirectory() as folder:
        measure(app, Path(folder) / "bench.stepscope", args)


def measure(app: QApplication, path: Path, args: argparse.Namespace) -> None:
    story = Story(path, gpus=args.gpus, first_step_s=1.0, steps_per_s=250)
    at = 1.0 + args.steps / 250
    story.advance(at)
    document, recorder = Document(), Recorder()
    panel = LivePanel(document, recorder)
    panel.resize(1536, 940)
    handlers: list[float] = []
    original = panel.body.charts.show_rows

    def timed(*a: object, **k: object) -> None:
        begun = time.thread_time()
        original(*a, **k)  # type: ignore[arg-type]
        for widget in panel.body.charts.rows.values():
            widget.repaint()
        handlers.append((time.thread_time() - begun) * 1e3)

    panel.body.charts.show_rows = timed  # type: ignore[method-assign]
    panel.asker.charts.disconnect()
    panel.asker.charts.connect(panel._show_charts)
    panel.show()
    document.open(path)
    begun = time.monotonic()
    renders, cpu = panel.body.charts.renders(), time.thread_time()
    while (passed := time.monotonic() - begun) < args.seconds:
        story.advance(at + passed)
        deadline = time.monotonic() + 0.1
        while time.monotonic() < deadline:
            app.processEvents()
            time.sleep(0.002)
    cpu = time.thread_time() - cpu
    rows = sum(hasattr(row, "renders") for row in panel.body.charts.rows.values())
    rate = (panel.body.charts.renders() - renders) / args.seconds / max(1, rows) / 2
    print(f"{story.step} steps, {args.gpus} GPUs, {rows} charts")
    if handlers:
        top = sorted(handlers)[int(0.95 * len(handlers))]
        print(f"GUI thread per repaint of all charts: median {statistics.median(handlers):.1f} ms, "
              f"95 % {top:.1f} ms of CPU")
        print(f"data shown {len(handlers) / args.seconds:.1f} times a second; each chart drawn about {rate:.1f} times a second")
    print(f"CPU of the GUI thread, writing the run included: {100 * cpu / args.seconds:.0f} % of a core")
    panel.shut_down()
    document.shutdown()


if __name__ == "__main__":
    main()
