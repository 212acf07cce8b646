"""The bar over the charts: which run, how far it is, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QComboBox, QHBoxLayout, QSizePolicy, QWidget

from app import icons, theme
from app.icons import IconLabel
from app.live.header import Chip
from app.tokens import PADDING, RUN_BAR
from app.widgets.basic import Hairline, Surface, chip, label, restyle, tip
from app.widgets.button import Button
from app.widgets.paint import text_width, write
from app.widgets.sentence import Part, Sentence
from profiler.model import Device
from profiler.units import format_count

TRACE_STEPS = 8


class _Dot(QWidget):
    """Red and still while something is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.colour = "t3"
        self.setFixedSize(10, 10)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(self.colour))
        painter.drawEllipse(self.rect())
        painter.end()


class FollowChip(QAbstractButton):
    """Says whether the view follows the live end; pressing it goes there."""

    def __init__(self) -> None:
        super().__init__()
        self.setCheckable(True)
        self.setText("Following")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        theme.changed.connect(self.update)

    def show_following(self, following: bool) -> None:
        self.setChecked(following)
        self.setText("Following" if following else "Go to live")
        self.setToolTip("The view stays at the newest moment" if following else "Follow the newest again")
        self.setAccessibleName(self.text())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(text_width("Go to live", 11)) + 40, 20)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        on = self.isChecked()
        focus = self.hasFocus()
        colour = "acc" if on or focus else "line2"
        painter.setPen(QPen(theme.colour(colour), 2 if focus else 1))
        painter.setBrush(theme.colour("acctint" if on else "hover" if self.underMouse() else "raised"))
        inset = 1.0 if focus else 0.5
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), 4, 4)
        ink = "acc" if on else "t2"
        pixmap = icons.pixmap("follow", ink, 12, self.devicePixelRatioF())
        width = text_width(self.text(), 11) + 18
        x = (self.width() - width) / 2
        painter.drawPixmap(round(x), 4, pixmap)
        write(painter, QRectF(x + 18, 0, self.width(), self.height()), self.text(), ink)
        painter.end()


class Chips(QWidget):
    """Chips in a row; those for which there is no room are left out, the last first."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Chip] = []
        self._box = QHBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(8)
        self._box.addStretch(1)
        self._widgets: list[QWidget] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_chips(self, wanted: Sequence[Chip]) -> None:
        if list(wanted) == self._shown:
            return
        self._shown = list(wanted)
        for widget in self._widgets:
            widget.setParent(None)
            widget.deleteLater()
        self._widgets = [_chip_widget(c) for c in wanted]
        for i, widget in enumerate(self._widgets):
            self._box.insertWidget(i, widget)
        for widget in self._widgets:
            widget.ensurePolished()
        self.setMaximumWidth(sum(w.sizeHint().width() + 8 for w in self._widgets))
        self._fit()

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 20)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def _fit(self) -> None:
        width = -1
        while width != self.width():  # showing a chip may widen this at once
            width = self.width()
            room = width + 8
            for widget in self._widgets:
                room -= widget.sizeHint().width() + 8
                widget.setVisible(room >= 0)


def _chip_widget(wanted: Chip) -> QWidget:
    result = chip(wanted.text, wanted.kind)
    result.setToolTip(tip(wanted.tooltip))
    if wanted.icon:
        result.setContentsMargins(16, 0, 0, 0)
        icon = IconLabel(wanted.icon, "t2", 12, result)
        icon.move(7, 4)
    return result


class RunBar(Surface):
    """Shows what the panel tells it. The buttons only tell; the panel acts."""

    follow_pressed = Signal()
    pause_pressed = Signal()
    mark_pressed = Signal()
    trace_pressed = Signal()
    stop_pressed = Signal()
    device_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("raised", parent=parent)
        self.setFixedHeight(RUN_BAR)
        self.dot = _Dot()
        self.clock = label("00:00", "name")
        self.name = Sentence(15, 24)
        self.chips = Chips()
        self.devices = QComboBox()
        self.devices.setAccessibleName("GPU shown")
        self.devices.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.devices.hide()
        self.devices.activated.connect(lambda i: self.device_chosen.emit(self.devices.itemData(i)))
        self.progress = Sentence(12)
        self.ending = chip("")
        self.ending.hide()
        self.following = FollowChip()
        self.pause = Button("Pause view", icon="pause", key="Space")
        self.mark = Button("Mark", icon="mark", key="M")
        self.trace = Button(f"Trace {TRACE_STEPS} steps", icon="camera", key="T")
        self.stop = Button("Stop", kind="danger", icon="stop", key="Shift+F5")
        for button, signal in (
            (self.following, self.follow_pressed), (self.pause, self.pause_pressed),
            (self.mark, self.mark_pressed), (self.trace, self.trace_pressed), (self.stop, self.stop_pressed),
        ):
            button.clicked.connect(lambda _=False, s=signal: s.emit())
        holder = QWidget()
        holder.setLayout(self._line())
        self.box.addWidget(holder, 1)
        self.box.addWidget(Hairline())

    def _line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(PADDING, 0, PADDING, 0)
        line.setSpacing(12)
        for widget in (self.dot, self.clock, _divider(), self.name, self.chips, self.devices, _divider(),
                       self.progress, self.ending):
            line.addWidget(widget, 100 if widget is self.chips else 0)
        line.addStretch(1)
        for widget in (self.following, self.pause, self.mark, self.trace, self.stop):
            line.addWidget(widget)
        return line

    def show_name(self, name: str) -> None:
        self.name.show_parts([Part(name, "t1", 600)])

    def show_progress(self, step: int | None, planned: int | None, throughput: str) -> None:
        """step 812 of 2 000, and the throughput of the steady steps."""
        parts = []
        if step is not None:
            parts += [Part("step "), Part(format_count(step), "t1", 600)]
            if planned is not None:
                parts.append(Part(f" of {format_count(planned)}"))
        if throughput:
            number, _, unit = throughput.rpartition("\u00a0")
            parts += [Part("    " if parts else ""), Part(number, "t1", 600), Part(f"\u00a0{unit}")]
        self.progress.show_parts(parts)

    def show_paused(self, paused: bool) -> None:
        self.pause.setText("Resume view" if paused else "Pause view")
        self.pause.set_icon("launch" if paused else "pause")

    def show_ending(self, wanted: Chip | None) -> None:
        self.ending.setVisible(wanted is not None)
        if wanted is not None:
            self.ending.setText(wanted.text)
            self.ending.setToolTip(tip(wanted.tooltip))
            restyle(self.ending, chip=wanted.kind)

    def show_devices(self, devices: Sequence[Device], shown: int | None) -> None:
        """A choice where there are several."""
        names = [device.label for device in devices]
        if names != [self.devices.itemText(i) for i in range(self.devices.count())]:
            self.devices.clear()
            for name, device in zip(names, devices, strict=True):
                self.devices.addItem(name, device.id)
        if shown is not None and not self.devices.view().isVisible():
            self.devices.setCurrentIndex(max(0, self.devices.findData(shown)))
        self.devices.setVisible(len(names) > 1)

    def show_state(self, *, recording: bool, stopping: bool, ours: bool, trace: bool) -> None:
        """What can be done: `ours` is a recording of this window."""
        own = (self.stop, self.mark, self.trace) if stopping or not ours else ()
        leaving = (*own, *(() if recording else (self.following, self.pause)))
        if any(button.hasFocus() for button in leaving):
            # A button that goes away hands its focus, and a ring with it, to the next best one.
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.dot.colour = "err" if recording else "t3"
        self.dot.update()
        self.following.setVisible(recording)
        self.pause.setVisible(recording)
        for button in (self.mark, self.stop):
            button.setVisible(ours)
        self.trace.setVisible(ours and trace)
        self.mark.setEnabled(not stopping)
        self.trace.setEnabled(not stopping)
        self.stop.setEnabled(not stopping)
        text = "Stopping\u2026" if stopping else "Stop"
        if self.stop.text() != text:
            self.stop.setText(text)


def _divider() -> QWidget:
    result = Hairline(vertical=True, colour="line2")
    result.setFixedHeight(20)
    return result
