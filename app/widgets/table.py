"""The one table: columns over rows of any dataclass. Copies as tab-separated values and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, QRectF, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app import icons, theme
from app.tokens import PADDING, ROW, TABLE_HEAD
from app.widgets.basic import tip
from app.widgets.paint import font, swatch, write
from profiler.report.spreadsheet import cell as spreadsheet_cell

Row = TypeVar("Row")
Index = QModelIndex | QPersistentModelIndex
NOTHING = QModelIndex()


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`text` of a row; numbers stand at the right. A missing value is an empty cell, its reason the tooltip.

    `mark` draws beside or instead of the text: swatch (text is the name, `value` the
    stage), share (a bar of `value` in [0, 1] in the pattern of `stage`), icon (`value` its name and colour).
    """

    title: str
    text: Callable[[Row], str]
    right: bool = False
    width: int = 0  # px; 0 takes what is left
    mark: Literal["", "swatch", "share", "icon"] = ""
    value: Callable[[Row], Any] | None = None
    stage: Callable[[Row], str] | None = None
    colour: str = "t1"
    weight: int = 400
    tooltip: Callable[[Row], str] | None = None


class TableModel(QAbstractTableModel, Generic[Row]):
    """Rows in the order given. `replace` keeps the selection where the number of rows stays."""

    def __init__(self, columns: Sequence[Column[Row]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()

    def replace(self, rows: Sequence[Row]) -> None:
        rows = tuple(rows)
        if rows == self.rows:
            return
        if len(rows) == len(self.rows):
            self.rows = rows
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self.columns) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = NOTHING) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = NOTHING) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self.rows[index.row()], self.columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole and column.tooltip is not None:
            return tip(column.tooltip(row)) or None
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section].title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if self.columns[section].right else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def as_text(self, rows: Sequence[int] | None = None, markdown: bool = False) -> str:
        """These rows (default: all) with the head, tab-separated or as a Markdown table."""
        chosen = [self.rows[i] for i in (range(len(self.rows)) if rows is None else rows)]
        lines = [[c.title for c in self.columns], *([c.text(row) for c in self.columns] for row in chosen)]
        cells = [[" ".join(cell.split()) for cell in line] for line in lines]
        if not markdown:
            return "\n".join("\t".join(map(spreadsheet_cell, line)) for line in cells) + "\n"
        rule = ["---:" if c.right else "---" for c in self.columns]
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in cells]
        return "\n".join(f"| {' | '.join(line)} |" for line in [escaped[0], rule, *escaped[1:]]) + "\n"


class _Delegate(QStyledItemDelegate):
    """Paints cells as the design has them: no vertical lines, separators in `grid`."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        table = self.parent()
        assert isinstance(table, Table)
        row, column = table.model_.rows[index.row()], table.model_.columns[index.column()]
        option_any: Any = option  # the stubs lack its fields
        box = QRectF(option_any.rect)
        last = table.sum_row and index.row() == len(table.model_.rows) - 1
        lit = table.selectionModel().isRowSelected(index.row(), NOTHING) or \
            (table.highlight is not None and table.highlight(row))
        painter.save()
        painter.fillRect(box, theme.colour("sel" if lit else "raised"))
        painter.fillRect(QRectF(box.left(), box.bottom() - 1, box.width(), 1), theme.colour("grid"))
        if index.column() == 0 and table.hasFocus() and index.row() == table.currentIndex().row():
            painter.fillRect(QRectF(box.left(), box.top(), 2, box.height() - 1), theme.colour("acc"))
        self._content(painter, box, row, column, 600 if last else column.weight, table, index)
        painter.restore()

    def _content(self, painter: QPainter, box: QRectF, row: Any, column: Column[Any], weight: int,
                 table: Table, index: Index) -> None:
        inner = box.adjusted(*_insets(index.column(), len(table.model_.columns)))
        text = column.text(row)
        value = column.value(row) if column.value is not None else None
        dpr = table.devicePixelRatioF()
        if column.mark == "swatch" and value:
            swatch(painter, QRectF(inner.left(), round(inner.center().y()) - 6, 12, 12), value, dpr)
            inner.adjust(19, 0, 0, 0)
        elif column.mark == "share" and value is not None:
            self._share(painter, inner, float(value), column.stage(row) if column.stage else "other", dpr)
            return
        elif column.mark == "icon" and value:
            pixmap = icons.pixmap(value[0], value[1], 14, dpr)
            painter.drawPixmap(int(inner.left()), round(inner.center().y()) - 7, pixmap)
            return
        painter.setFont(font(12, weight))
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(inner.width()) + 1)
        align = Qt.AlignmentFlag.AlignRight if column.right else Qt.AlignmentFlag.AlignLeft
        write(painter, inner, shown, column.colour, 12, weight, align)

    def _share(self, painter: QPainter, inner: QRectF, share: float, stage: str, dpr: float) -> None:
        track = QRectF(round(inner.left()), round(inner.center().y()) - 6, round(inner.width()), 12)
        painter.fillRect(track, theme.colour("base" if not theme.tokens().dark else "chrome"))
        width = max(1.0, round(track.width() * min(1.0, share))) if share > 0 else 0.0
        if width:
            swatch(painter, QRectF(track.left(), track.top(), width, track.height()), stage, dpr)


class _Head(QHeaderView):
    """Titles that stand over their cells."""

    def __init__(self, table: Table) -> None:
        super().__init__(Qt.Orientation.Horizontal, table)
        self._table = table

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        columns = self._table.model_.columns
        painter.fillRect(rect, theme.colour("raised"))
        box = QRectF(rect).adjusted(*_insets(section, len(columns)))
        align = Qt.AlignmentFlag.AlignRight if columns[section].right else Qt.AlignmentFlag.AlignLeft
        write(painter, box, columns[section].title, "t3", 11, 400, align)
        painter.fillRect(QRectF(rect.left(), rect.bottom(), rect.width(), 1), theme.colour("line"))


def _insets(column: int, columns: int) -> tuple[int, int, int, int]:
    """Padding of a cell: that of the pane at its two ends."""
    return PADDING if column == 0 else 4, 0, -PADDING if column == columns - 1 else -4, 0


class Table(QTableView):
    """As high as its rows, or as `most` of them. `sum_row`: the last row is a sum.

    `highlight`: the rows that answer the question.
    """

    def __init__(
        self, columns: Sequence[Column[Any]], name: str, *, head: bool = True, sum_row: bool = False,
        highlight: Callable[[Any], bool] | None = None, most: int = 0, parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.model_: TableModel[Any] = TableModel(columns)
        self.sum_row, self.highlight, self._most = sum_row, highlight, most
        self.setModel(self.model_)
        self.setItemDelegate(_Delegate(self))
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.verticalHeader().setMinimumSectionSize(ROW)
        self._set_up_head(head)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        for text, key, markdown in (("Copy", QKeySequence(QKeySequence.StandardKey.Copy), False),
                                    ("Copy as Markdown", QKeySequence("Ctrl+Shift+M"), True)):
            action = QAction(text, self)
            action.setShortcut(key)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(lambda _=False, m=markdown: self.copy(m))
            self.addAction(action)
        theme.changed.connect(self.viewport().update)
        self._fit()

    def _set_up_head(self, shown: bool) -> None:
        head = _Head(self)
        self.setHorizontalHeader(head)
        head.setVisible(shown)
        head.setFixedHeight(TABLE_HEAD)
        head.setHighlightSections(False)
        head.setSectionsClickable(False)
        head.setMinimumSectionSize(16)
        for i, column in enumerate(self.model_.columns):
            if column.width:
                head.setSectionResizeMode(i, QHeaderView.ResizeMode.Fixed)
                self.setColumnWidth(i, column.width)
            else:
                head.setSectionResizeMode(i, QHeaderView.ResizeMode.Stretch)

    def show_rows(self, rows: Sequence[Any]) -> None:
        before = len(self.model_.rows)
        self.model_.replace(rows)
        if len(self.model_.rows) != before:
            self._fit()

    def _fit(self) -> None:
        head = TABLE_HEAD if self.horizontalHeader().isVisibleTo(self) else 0
        rows = len(self.model_.rows)
        shown = min(rows, self._most) if self._most else rows
        policies = Qt.ScrollBarPolicy
        needed = policies.ScrollBarAsNeeded if shown < rows else policies.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(needed)
        self.setFixedHeight(head + ROW * shown)

    def copy(self, markdown: bool = False) -> None:
        """The selected rows, or all, to the clipboard."""
        selected = sorted({index.row() for index in self.selectionModel().selectedRows()})
        QGuiApplication.clipboard().setText(self.model_.as_text(selected or None, markdown))
