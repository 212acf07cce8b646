"""How long the timeline takes for a frame while it pans and zooms over a million spans in forty lanes.

Draws into an image, as a window does without a compositor. Prints median and 99th percentile of the CPU
time of a frame at several zoom levels, so that what else runs counts little; asserts nothing.

    python tests/bench/timeline_frames.py [--spans 1000000] [--lanes 40] [--frames 120] [--scale 1]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app import theme
from app.timeline.build import depths
from app.timeline.canvas import Canvas
from app.timeline.scene import Scene
from app.timeline.spans import COLOURS, Builder, Model
from app.timeline.view import View

SECONDS = 60
ZOOMS = (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001)  # of the run in view


def model(spans: int, lanes: int) -> Model:
    """Half of the lanes are host threads with nested spans, half are streams."""
    made, builder = np.random.default_rng(7), Builder()
    each, long = spans // lanes, SECONDS * 10**9
    for lane in range(lanes):
        host = lane % 2 == 0
        start = np.sort(made.integers(0, long, each))
        gap = np.diff(np.append(start, long))
        length = np.where(made.random(each) < 0.3, gap * 3, gap * 0.8) if host else gap * 0.9
        end = start + np.maximum(length.astype(np.int64), 1)
        order = np.lexsort((-end, start))
        start, end = start[order], end[order]
        names = np.array([builder.code(f"aten::operator_{k}") for k in range(200)], np.int32)
        columns = {"start": start, "end": end, "colour": made.integers(0, len(COLOURS), each),
                   "name": names[made.integers(0, 200, each)], "ref": np.arange(each)}
        kind = "host" if host else "stream"
        title = "CPU main" if host else f"Stream {lane}"
        builder.add(f"{kind}/{lane}", title, "", kind, columns, depths(start, end, np.zeros(each, np.int32)))
    return builder.model((0, long)).prepare()


def measure(canvas: Canvas, image: QImage, frames: int, move: float, factor: float) -> list[float]:
    """CPU time of each frame in ms, after a pan by a share of the view, or a zoom."""
    view, found = canvas.view, []
    for k in range(frames):
        way = 1 if k % 20 < 10 else -1
        if factor != 1:
            view.zoom(factor**way, (view.x0 + view.x1) / 2)
        else:
            view.pan(move * way)
        begun = time.thread_time()
        canvas.render(image)
        found.append(1000 * (time.thread_time() - begun))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--lanes", type=int, default=40)
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--scale", type=float, default=1.0)
    args = parser.parse_args()
    os.environ["QT_SCALE_FACTOR"] = str(args.scale)  # a screen of so many device pixels per logical one
    app = QApplication([])
    theme.apply(app, "dark")
    scene, view = Scene(), View()
    begun = time.perf_counter()
    scene.show_model(model(args.spans, args.lanes), keep=False)
    print(f"{len(scene.model):,} spans in {len(scene.model.lanes)} lanes, "
          f"{len(scene.model.rows)} rows, made in {time.perf_counter() - begun:.1f} s")
    view.set_limits(0, SECONDS * 1e9)
    canvas = Canvas(scene, view)
    canvas.resize(1216, 760)
    canvas.show()
    app.processEvents()
    image = QImage(canvas.size() * args.scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(canvas.devicePixelRatioF())
    every: list[float] = []
    for zoom in ZOOMS:
        span = SECONDS * 1e9 * zoom
        for name, move, factor in (("pan", 0.013, 1.0), ("zoom", 0.0, 1.06)):
            view.show_range(SECONDS * 0.4e9, SECONDS * 0.4e9 + span)
            found = measure(canvas, image, args.frames, move, factor)
            every += found
            print(f"{span / 1e6:12,.2f} ms in view, {name:4}: median {np.median(found):5.1f} ms, "
                  f"99th percentile {np.percentile(found, 99):5.1f} ms")
    print(f"all: median {np.median(every):.1f} ms, 99th percentile {np.percentile(every, 99):.1f} ms")


if __name__ == "__main__":
    main()
