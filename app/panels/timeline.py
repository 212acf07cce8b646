"""Timeline: every span of a run on one clock, and what a stretch of it went to."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.document import Document
from app.selection import Place, Selection
from app.timeline import details, flame, recorded, region
from app.timeline.deeds import Deeds
from app.timeline.flame import Flame
from app.timeline.helper import Helper
from app.timeline.recorded import Counters
from app.timeline.region import Region
from app.timeline.spans import EMPTY, Model
from profiler.run.reader import Run
from profiler.units import format_ms, format_share, format_time

ASK_MS, TELL_MS, GROW_MS = 60, 250, 1000


def query(run: Run, traced: Path | None) -> tuple[Model, bool]:
    """The lanes of a run with those of its traces, once a file has them; and whether it holds traces."""
    return recorded.whole(run, traced), any(item.kind == "kineto" for item in run.attachments())


class TimelinePanel(Deeds):
    """Asks the document and the helper that has read the traces, and hands the answers to its parts."""

    title = "Timeline"

    def __init__(self, document: Document, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.document, self.selection, self.helper = document, selection, Helper(self)
        self._lanes: Path | None = None  # the file with the lanes of the traces
        self._fitted = ""  # what the view was fitted to: the run, or its trace
        self._stale: set[str] = set()
        self._unread = False  # the run's traces, which are read when this screen is looked at
        self._asked = 0.0
        self._wait = self._timer(ASK_MS, self._ask)
        self._tell = self._timer(TELL_MS, self._publish)
        self._grow = self._timer(GROW_MS, partial(self._ask_model))
        self._connect()
        self.body.bar.back.setEnabled(selection.can_go_back)
        if document.info is not None:
            self._on_opened()

    def _timer(self, ms: int, do: Any) -> QTimer:
        timer = QTimer(self, interval=ms, singleShot=True)
        timer.timeout.connect(do)
        return timer

    def _connect(self) -> None:
        document, scene, body = self.document, self.scene, self.body
        document.opened.connect(self._on_opened)
        document.closed.connect(self._on_closed)
        document.ended.connect(self._ask_model)
        document.grew.connect(self._on_grew)
        self.helper.progress.connect(self._on_progress)
        self.helper.ready.connect(self._on_lanes)
        self.helper.failed.connect(self._on_failed)
        self.view.changed.connect(self._on_view)
        scene.region_changed.connect(self._on_region)
        scene.selected_changed.connect(self._on_selected)
        self.selection.changed.connect(self._on_place)
        body.canvas.details_wanted.connect(body.show_side)
        body.flame.order.changed.connect(lambda _value: self._later("flame"))
        body.side.cleared.connect(partial(scene.choose_region, None))
        body.bar.cancel.clicked.connect(self._cancel)
        body.bar.back.clicked.connect(self.selection.back)

    # What happens to the run.

    def _on_opened(self, *_: object) -> None:
        self.helper.end()
        self._lanes, self._fitted, self._unread = None, "", False
        self.scene.arrangement = type(self.scene.arrangement)()
        self.body.show_info(self.document.info)
        self.body.tools.field.clear()
        self.scene.show_model(EMPTY, keep=False)
        self._ask_model()

    def _on_grew(self) -> None:
        if self.isVisible() and not self._grow.isActive():
            self._grow.start()

    def _on_progress(self, share: float) -> None:
        self.body.bar.show_progress(f"Reading the trace, {format_share(share)}")

    def _on_closed(self) -> None:
        self.helper.end()
        self._lanes = None
        self.scene.show_counters(Counters())
        self.scene.show_model(EMPTY, keep=False)

    def _ask_model(self) -> None:
        if self.document.busy("timeline"):
            self._grow.start()
            return
        self.body.show_info(self.document.info)
        self._asked = monotonic()
        self.document.query("timeline", partial(query, traced=self._lanes), self._show_model, self._on_failed)

    def _show_model(self, answer: tuple[Model, bool]) -> None:
        model, has_trace = answer
        self.scene.show_model(model, keep=True)
        low, high = self.view.low, self.view.high
        followed = self.view.x0 <= low and self.view.x1 >= high
        self.view.set_limits(*model.limits)
        wanted = "trace" if model.traced else "run"
        if self._fitted != wanted:
            self._fitted = wanted
            first, last = zip(*model.traced) if model.traced else zip(model.limits)
            self.view.fit(float(min(first)), float(max(last)))
            self.body.share_height(self.scene.height)
            self._on_place(self.selection.place)  # what was chosen on another screen before this one was made
        elif followed and (low, high) != (self.view.low, self.view.high):
            self.view.fit()
        self.body.show_model(model, has_trace, self.document.recording)
        start, end = self.scene.steps()
        self.body.bar.show_step(format_ms(float(np.median(end - start))) if len(start) else "")
        self._unread = has_trace and self._lanes is None and not self.document.recording
        # A long run takes longer: then it is looked at less often.
        self._grow.setInterval(max(GROW_MS, round(10_000 * (monotonic() - self._asked))))
        self._later("counters", "flame", "region")

    def _on_lanes(self, path: Path) -> None:
        self._lanes = path
        self.body.bar.show_progress("")
        self._ask_model()

    def _on_failed(self, error: object) -> None:
        self.body.bar.show_progress("")
        self.body.show_error(f"The trace cannot be shown: {error}")

    def _cancel(self) -> None:
        self.helper.end()
        self._on_failed("reading was cancelled; open the run again to read it")

    # Questions, each once the hand rests.

    def _later(self, *what: str) -> None:
        self._stale |= set(what)
        self._wait.start()

    def _on_view(self) -> None:
        self.body.tools.show_span(self.view.span)
        self._later("counters", *(() if self.scene.region is not None else ("flame",)))

    def _on_region(self) -> None:
        self._later("region", "flame")
        self._tell.start()

    def _ask(self) -> None:
        if not self.isVisible():
            return
        if self._unread and not self.helper.running and self.document.path is not None:
            self._unread = False
            self.body.bar.show_progress("Reading the trace")
            self.helper.read(self.document.path)
        stale, self._stale = self._stale, set()
        if "region" in stale:
            self._ask_region()
        if "flame" in stale:
            where = self.scene.region or (int(self.view.x0), int(self.view.x1))
            order, model, lane = str(self.body.flame.order.value()), self.scene.model, self._host_lane()
            self.document.query(
                "timeline-flame", lambda _run: flame.compute(model, where, order, lane), self._show_flame
            )
        if "counters" in stale and not self._has_counters():
            span, width = int(self.view.span), int(self.body.canvas.plot.width())
            t0, t1 = int(self.view.x0) - span, int(self.view.x1) + span
            self.document.query(
                "timeline-counters",
                lambda run: recorded.counters(run, t0, t1, 3 * width),
                self._show_counters,
            )

    def _host_lane(self) -> str:
        """Key of the lane of the selected span; "" where that is of no host thread."""
        model, span = self.scene.model, self.scene.selected
        lane = model.lane(span) if span >= 0 else None
        return lane.key if lane is not None and lane.kind in ("host", "python") else ""

    def _show_counters(self, found: Counters) -> None:
        height = self.scene.height
        self.scene.show_counters(found)
        if self.scene.height != height:
            self.body.share_height(self.scene.height)

    def _has_counters(self) -> bool:
        had = self.scene.counters
        return (
            had.t0 <= self.view.x0
            and self.view.x1 <= had.t1
            and had.t1 - had.t0 <= 8 * self.view.span
            and not self.document.recording
        )

    def _show_flame(self, answer: tuple[Flame, str]) -> None:
        self.body.flame.show_data(*answer)

    def _ask_region(self) -> None:
        chosen = self.scene.region
        if chosen is None:
            self._show_region(None)
        elif self._lanes is not None and self.helper.running:
            self.helper.ask(
                "region", partial(self._told_region, chosen), ask="region", t0=chosen[0], t1=chosen[1]
            )
        else:
            self._told_region(chosen, None)

    def _told_region(self, chosen: tuple[int, int], told: Any) -> None:
        if told is not None:
            self._show_region(region.from_json(told))
        else:
            nothing = Region(*chosen, sentence=region.NOTHING)
            self.document.query(
                "timeline-region",
                lambda run: recorded.region(run, *chosen),
                lambda found: self._show_region(found or nothing),
            )

    def _show_region(self, found: Region | None) -> None:
        self.scene.region_title = found.title if found is not None else ""
        self.body.side.show_region(found)
        self.body.ruler.update()

    def _on_selected(self) -> None:
        self._later("flame")
        model, span = self.scene.model, self.scene.selected
        if span < 0:
            self.body.side.show_span(None, "")
            return
        lane = model.lane(span)
        long = format_time(float(model.end[span] - model.start[span]))
        self.body.side.show_span(None, model.text(span), (("Lane", lane.title), ("Duration", long)))
        if lane.process >= 0 and self.helper.running:
            self.helper.ask("span", self._told_span, ask="span", span=span)

    def _told_span(self, told: Any) -> None:
        if told is not None and int(told["span"]) == self.scene.selected:
            found = details.from_json(told)
            self.body.side.show_span(found, found.title)
            self.scene.show_links(found.links)

    # The selection that all screens share.

    def _publish(self) -> None:
        info, chosen = self.document.info, self.scene.region
        if info is not None:
            place = self.selection.place
            where = None if chosen is None else (info.start_ns + chosen[0], info.start_ns + chosen[1])
            if where != place.range_ns:
                self.selection.choose(Place(where, place.device, place.name))

    def _on_place(self, place: Place) -> None:
        self.body.bar.back.setEnabled(self.selection.can_go_back)
        info = self.document.info
        if info is None:
            return
        start, where = info.start_ns, place.range_ns
        chosen = None if where is None else (where[0] - start, where[1] - start)
        if chosen != self.scene.region:
            self.scene.choose_region(chosen)
            if chosen is not None:
                self.view.reveal(float(chosen[0]), float(chosen[1]))

    def showEvent(self, event: QShowEvent) -> None:
        self._wait.start()
        if self.document.recording:
            self._grow.start()

    def hideEvent(self, event: QHideEvent) -> None:
        self._grow.stop()

    def reset_layout(self) -> None:
        self.body.reset_layout()

    def shut_down(self) -> None:
        """End what this panel has started."""
        self.helper.end()
