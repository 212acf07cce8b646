"""The verdict in one strip: what it is, what it costs, what to try, and the test of it."""

from __future__ import annotations

from PySide6.QtCore import QPropertyAnimation, Qt, Signal
from PySide6.QtGui import QPixmap, QResizeEvent
from PySide6.QtWidgets import QGraphicsOpacityEffect, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app import theme
from app.live.verdict import VerdictData
from app.tokens import PADDING, VERDICT_STRIP
from app.widgets.badge import Badge
from app.widgets.basic import Hairline, Surface, label, tip
from app.widgets.button import Button
from app.widgets.sentence import Part, Sentence
from app.widgets.stage_flag import StageFlag
from profiler.rules.words import SCORES
from profiler.units import format_time

FLAG = 16
SENTENCE = 0.62  # of what is left beside verdict and buttons, before any of the others has more
DIVIDER, LEAST = 49, 480  # px
NARROW = 1100  # px: below it the words need the room of a button that has a key and a menu entry


class VerdictStrip(Surface):
    """Shows `VerdictData` and how a test of it goes. The buttons only tell; the panel acts."""

    diagnose_wanted = Signal()
    verify_pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("raised", parent=parent)
        self.setFixedHeight(VERDICT_STRIP)
        self.setMinimumWidth(LEAST)  # and not what its words have now: the window can be made smaller
        self.data: VerdictData | None = None
        self._flag = StageFlag(FLAG)
        self._word = label("", "heading")
        self._age = Sentence(12, firm=True)
        self._sentence = Sentence(15, 24)
        self._detail = Sentence(12)
        self._try = Sentence(13, 20)
        self._outcome = Sentence(12)
        self.badge = Badge()
        self.diagnose = Button("Diagnose", key="Ctrl+3")
        self.verify = Button("Verify after stop", kind="primary")
        self.diagnose.clicked.connect(self.diagnose_wanted)
        self.verify.clicked.connect(self.verify_pressed)
        line = QHBoxLayout()
        line.setContentsMargins(0, 0, PADDING, 0)
        line.setSpacing(0)
        line.addWidget(self._flag)
        line.addSpacing(PADDING)
        self._dividers = (_divider(), _divider())
        line.addLayout(_pair(self._word, self._age))
        line.addWidget(self._dividers[0])
        line.addLayout(_pair(self._sentence, self._detail))
        line.addWidget(self._dividers[1])
        outcome = QHBoxLayout()
        outcome.setSpacing(8)
        outcome.addWidget(self._outcome)
        outcome.addWidget(self.badge)
        outcome.addStretch(1)
        line.addLayout(_pair(self._try, outcome))
        line.addStretch(1)
        line.addWidget(self.diagnose)
        line.addSpacing(8)
        line.addWidget(self.verify)
        self.box.addLayout(line, 1)
        self.box.addWidget(Hairline())
        self._old = QLabel(self)
        self._old.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._old.hide()
        effect = QGraphicsOpacityEffect(self._old)
        self._old.setGraphicsEffect(effect)
        self._fade = QPropertyAnimation(effect, b"opacity", self)
        self._fade.setStartValue(1.0)
        self._fade.setEndValue(0.0)
        self._fade.finished.connect(self._old.hide)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        watching = self.data is not None and self.data.word == "watching"
        self.diagnose.setVisible(not watching and self.width() >= NARROW)
        self._make_room()

    def _make_room(self) -> None:
        """Advice and details may be long: each leaves the sentence and the result their part."""
        words = max(self._word.sizeHint().width(), self._age.sizeHint().width())
        buttons = [b.sizeHint().width() + 8 for b in (self.diagnose, self.verify) if not b.isHidden()]
        room = max(0, self.width() - FLAG - 2 * PADDING - words - 2 * DIVIDER - sum(buttons))
        badge = 0 if self.badge.isHidden() else self.badge.sizeHint().width() + 8
        for what, most in ((self._sentence, SENTENCE * room), (self._try, (1 - SENTENCE) * room),
                           (self._outcome, (1 - SENTENCE) * room - badge)):
            what.setMinimumWidth(max(0, min(what.sizeHint().width(), int(most))))

    def show_verdict(self, data: VerdictData, age_s: float | None, changed: bool) -> None:
        """`age_s` since the word was first said; None for a finished run."""
        if changed and self.data is not None and self.isVisible():
            self._fade_from(self.grab())
        self.data = data
        self._flag.show_stage(data.stage)
        if self._word.text() != data.title:
            self._word.setText(data.title)
        self._age.show_parts([Part(age_text(data, age_s))])
        parts = [Part(text, "t1", 600 if strong else 400) for text, strong in data.sentence]
        self._sentence.show_parts(parts)
        self._detail.show_parts([Part(data.detail, "t2")])
        self._make_room()
        self._dividers[0].setVisible(bool(data.sentence))
        tested = data.word != "watching"
        self.verify.setVisible(tested)
        self.diagnose.setVisible(tested and self.width() >= NARROW)

    def show_try(self, parts: list[Part], outcome: list[Part], badge: tuple[str, str] | None = None) -> None:
        """What to try, and what is known of it. `badge`: (word, kind of chip)."""
        self._try.show_parts(parts)
        self._outcome.show_parts(outcome)
        self._dividers[1].setVisible(bool(self._try.parts or self._outcome.parts))
        self.badge.show_badge(badge)
        if badge is not None:
            self.badge.setToolTip(tip(SCORES.get(badge[0].lower(), "").capitalize()))
        self._make_room()

    def _fade_from(self, picture: QPixmap) -> None:
        """The former verdict goes away over the new one."""
        duration = theme.duration(200)
        if not duration:
            return
        self._old.setPixmap(picture)
        self._old.setGeometry(0, 0, self.diagnose.x() - 8, self.height())
        self._old.show()
        self._fade.setDuration(duration)
        self._fade.start()


def age_text(data: VerdictData, age_s: float | None) -> str:
    before = {"waiting": "the verdict comes with the steps", "warming": "not yet a verdict",
              "watching": "no command, no steps"}
    if data.word in before:
        return before[data.word]
    if data.word == "unknown":
        return "no claim is made"
    if age_s is None:
        return f"whole run, confidence {data.confidence}"
    seconds = max(1, int(age_s))
    age = f"{seconds}\u00a0s" if seconds < 60 else format_time(seconds * 1e9)
    return f"agreed for {age}, confidence {data.confidence}"


def _pair(upper: QWidget, lower: QWidget | QHBoxLayout) -> QVBoxLayout:
    box = QVBoxLayout()
    box.setContentsMargins(0, 0, 0, 0)
    box.setSpacing(4)
    box.addStretch(1)
    box.addWidget(upper)
    if isinstance(lower, QWidget):
        box.addWidget(lower)
    else:
        box.addLayout(lower)
    box.addStretch(1)
    return box


def _divider() -> QWidget:
    result = QWidget()
    box = QHBoxLayout(result)
    box.setContentsMargins(24, 0, 24, 0)
    line = Hairline(vertical=True, colour="line2")
    line.setFixedHeight(20)
    box.addWidget(line)
    result.setFixedWidth(DIVIDER)
    return result
