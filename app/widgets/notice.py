"""A line over the status bar: what went wrong, or what is done, until it is closed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.icons import IconLabel
from app.widgets.basic import Hairline, Surface, label, restyle, row
from app.widgets.button import Button

_ICONS = {"err": "error", "warn": "warning", "ok": "check", "info": "info"}


class Notice(Surface):
    """Hidden until there is something to tell."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("raised", parent=parent)
        self._icon = IconLabel("info", "t2", 16)
        self._text = label("", "sub", "t1")
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._more = Button("", kind="link")
        self._more.clicked.connect(self._act)
        self._do: Callable[[], object] | None = None
        close = Button("Close", kind="flat", icon="close")
        close.clicked.connect(self.hide)
        self.box.addWidget(Hairline())
        line = row(self._icon, self._text, self._more, close, spacing=8, margins=(16, 4, 8, 4))
        self.box.addLayout(line)
        self.hide()

    def show_text(
        self, text: str, tone: str = "err", action: str = "", do: Callable[[], object] | None = None
    ) -> None:
        """Tell `text`; tone err, warn, ok or info. `action` names a link that calls `do`."""
        ink = "t2" if tone == "info" else tone
        self._icon.show_icon(_ICONS[tone], ink)
        self._text.setText(text)
        self._text.setAccessibleName(text)
        restyle(self, surface={"err": "errtint", "warn": "warntint"}.get(tone, "raised"))
        self._more.setText(action)
        self._more.setVisible(bool(action))
        self._do = do
        self.show()

    def text(self) -> str:
        return self._text.text()

    def _act(self) -> None:
        if self._do is not None:
            self._do()
