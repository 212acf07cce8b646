"""How long Live keeps the GUI thread for one repaint, and how often it repaints a growing run.

Eight GPUs, sixteen cores, 10,000 steps. Prints medians; asserts nothing: machines differ.

    python tests/bench/live_repaint.py [--seconds 5] [--steps 10000] [--gpus 8]
"""

from __future__ import annotations

import argparse
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PySide6.QtWidgets import QApplication

from app import theme
from app.document import Document
from app.panels.live import LivePanel
from app.recorder import Recorder
from app.widgets.chart_row import ChartRow
from tests.app.story import Story

STEPS_PER_S = 250


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write is not None:
        write(args)
        return
    app = QApplication([])
    theme.apply(app, "dark")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.stepscope"
        command = [sys.executable, __file__, "--write", str(path), "--steps", str(args.steps),
                   "--gpus", str(args.gpus)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as writer:
            assert writer.stdout is not None and writer.stdin is not None
            writer.stdout.readline()
            try:
                measure(app, path, args)
            finally:
                writer.stdin.close()


def write(args: argparse.Namespace) -> None:
    """Be the recorder: write all the steps at once, then go on in real time until standard input ends."""
    story = Story(args.write, gpus=args.gpus, first_step_s=1.0, steps_per_s=STEPS_PER_S)
    story.writer.set_meta("recorder_pid", os.getpid())
    at = 1.0 + args.steps / STEPS_PER_S
    story.advance(at)
    print("ready", flush=True)
    begun = time.monotonic()
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        story.advance(at + time.monotonic() - begun)
    story.finish(at + time.monotonic() - begun)


def measure(app: QApplication, path: Path, args: argparse.Namespace) -> None:
    document, recorder = Document(), Recorder()
    panel = LivePanel(document, recorder)
    panel.resize(1536, 940)
    stack = panel.body.charts
    repaints: list[float] = []

    def timed(*answer: Any) -> None:
        begun = time.thread_time()
        panel._show_charts(*answer)
        for widget in stack.rows.values():
            widget.repaint()
        repaints.append((time.thread_time() - begun) * 1e3)

    panel.asker.charts.disconnect()
    panel.asker.charts.connect(timed)
    panel.show()
    document.open(path)
    cpu, deadline = time.thread_time(), time.monotonic() + args.seconds
    while time.monotonic() < deadline:
        app.processEvents()
        time.sleep(0.002)
    cpu = time.thread_time() - cpu
    charts = [row for row in stack.rows.values() if isinstance(row, ChartRow)]
    print(f"{args.steps} steps and more, {args.gpus} GPUs, {len(charts)} charts")
    if repaints:
        worst = sorted(repaints)[int(0.95 * len(repaints))]
        print("GUI thread for one repaint of all charts: "
              f"median {statistics.median(repaints):.1f} ms of CPU, 95 % {worst:.1f} ms")
        print(f"repaints of all charts: {len(repaints) / args.seconds:.1f} a second")
    print(f"GUI thread: {100 * cpu / args.seconds:.0f} % of a core")
    panel.shut_down()
    document.shutdown()


if __name__ == "__main__":
    main()
