"""How long until the first window is painted, beside a bare PySide6 window in the same run.

python tests/bench/window_start.py [RUNS]

Both are started in processes of their own, in turns. The time is from the start of
the process to the end of the first paint. Prints medians and their ratio.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

_BARE = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow
class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        QTimer.singleShot(0, lambda: (print("painted", flush=True), app.quit()))
app = QApplication([])
window = Window()
window.resize(1600, 1000)
window.show()
app.exec()
"""
_OURS = """
import sys
sys.path.insert(0, sys.argv[1])
from PySide6.QtWidgets import QApplication
from app.main_window import MainWindow
MainWindow._fill = lambda self: (print("painted", flush=True), QApplication.quit())
from app.main import run
run([])
"""


def start(code: str) -> float:
    """Seconds from the start of the process to the first paint."""
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(ROOT)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        took = time.perf_counter() - begin
    if line.strip() != "painted":
        raise SystemExit(f"no window: {line!r}, status {process.returncode}")
    return took


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    start(_BARE), start(_OURS)  # the disk's cache is warm for both
    bare, ours = [], []
    for _ in range(runs):
        bare.append(start(_BARE))
        ours.append(start(_OURS))
    a, b = statistics.median(bare), statistics.median(ours)
    print(f"bare PySide6 window  {a * 1000:6.0f} ms  ({min(bare) * 1000:.0f} to {max(bare) * 1000:.0f})")
    print(f"StepScope            {b * 1000:6.0f} ms  ({min(ours) * 1000:.0f} to {max(ours) * 1000:.0f})")
    print(f"ratio                {b / a:6.2f}     aim: at most 2, and below 1000 ms; {runs} runs each")


if __name__ == "__main__":
    main()
