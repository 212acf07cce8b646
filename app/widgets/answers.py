"""How often the diagnosis is right where the answer is known: the kept matrix, in a dialog."""

from __future__ import annotations

import shlex
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QGuiApplication,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableCellFormat,
)
from PySide6.QtWidgets import QDialog, QFrame, QTextBrowser, QVBoxLayout, QWidget

from app import theme
from app.widgets.basic import Hairline, label, row
from app.widgets.button import Button
from profiler.errors import ProfilerError
from profiler.experiments.matrix.kept import KEPT, read_kept
from profiler.experiments.matrix.words import markdown

WIDTH, HEIGHT = 920, 760
COMMAND = "stepscope matrix"
WHAT = (
    "Faults are put into the built-in workloads one at a time; controls are the same runs without. "
    "Each is recorded and diagnosed as any run is, and what the diagnosis says is held against the answer. "
    "Precision: of the runs in which a word was said, the share where it was so. Recall: of the runs where "
    "it was so, the share in which it was said. In brackets: 95 % bounds."
)
HERE = f"The figures are of the machine named below. The command {COMMAND} makes them on this one."
ABSENT = "No result is kept with this copy of StepScope"
MAKE = "The command below makes one, in about ten minutes on two cores"


class AnswersDialog(QDialog):
    """The tables of a kept matrix, or what is missing and the command that makes it."""

    def __init__(self, parent: QWidget | None = None, kept: Path = KEPT) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("How often it is right")
        self.text, reason = "", ABSENT
        if kept.exists():
            try:
                self.text = markdown(read_kept(kept))
            except ProfilerError as error:
                reason = error.message
        box = QVBoxLayout(self)
        box.setContentsMargins(24, 20, 24, 16)
        box.setSpacing(12)
        self.command = f"{COMMAND} --save {shlex.quote(str(kept))}"
        box.addWidget(label("How often the diagnosis is right", "heading"))
        for text in (WHAT, HERE) if self.text else (WHAT, f"{reason}. {MAKE}.", self.command):
            said = label(text, "sub")
            said.setWordWrap(True)
            said.setProperty("mono", text == self.command)
            box.addWidget(said)
        self.view = _tables() if self.text else None
        if self.view is not None:
            box.addWidget(self.view, 1)
            self.resize(WIDTH, HEIGHT)
            theme.changed.connect(self._show_tables)
            self._show_tables()
        else:
            box.addStretch(1)
        box.addWidget(Hairline())
        self.copy = Button("Copy as Markdown" if self.text else "Copy the command", icon="copy")
        self.copy.clicked.connect(self._copy)
        close = Button("Close", key="Esc")
        close.clicked.connect(self.accept)
        box.addLayout(row(self.copy, None, close))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text or self.command)

    def _show_tables(self) -> None:
        assert self.view is not None
        document = self.view.document()
        document.setMarkdown(self.text)
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                _style(frame)
        _part(document)
        self.view.moveCursor(QTextCursor.MoveOperation.Start)


def _tables() -> QTextBrowser:
    view = QTextBrowser()
    view.setAccessibleName("How often the diagnosis is right")
    view.setFrameShape(QFrame.Shape.NoFrame)
    view.setFont(theme.font(12))
    view.document().setDocumentMargin(0)
    view.viewport().setAutoFillBackground(False)  # on the dialog's own ground
    return view


def _part(document: QTextDocument) -> None:
    """Space between paragraphs."""
    block = document.begin()
    while block.isValid():
        cursor = QTextCursor(block)
        if cursor.currentTable() is None:
            look = block.blockFormat()
            look.setBottomMargin(8)
            cursor.setBlockFormat(look)
        block = block.next()


def _style(table: QTextTable) -> None:
    """As the tables of the window: no vertical lines, a quiet head, lines between rows."""
    look = table.format()
    look.setBorder(0)
    look.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_None)
    look.setBorderCollapse(True)
    look.setCellSpacing(0)
    look.setCellPadding(4)
    look.setTopMargin(8)
    look.setBottomMargin(12)
    look.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
    table.setFormat(look)
    for i in range(table.rows()):
        for k in range(table.columns()):
            cell = table.cellAt(i, k)
            line = QTextTableCellFormat(cell.format().toTableCellFormat())
            line.setBottomBorder(1)
            line.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            line.setBottomBorderBrush(QBrush(theme.colour("grid" if i else "line")))
            cell.setFormat(line)
