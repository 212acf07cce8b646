"""The left pane of Launch: workloads by group, with search, and the user's own command below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app import icons, theme
from app.widgets.basic import Hairline, Surface, chip, row, tip
from app.widgets.button import Button
from profiler.catalog import WorkloadInfo

_DATA = Qt.ItemDataRole.UserRole


@dataclass
class _Group:
    title: str
    count: int
    open: bool = True


@dataclass(frozen=True)
class _Entry:
    info: WorkloadInfo
    tag: str


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(100, 28 if isinstance(index.data(_DATA), _Group) else 48)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        entry, area = index.data(_DATA), QRect(option.rect)
        state = option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected) and isinstance(entry, _Entry)
        if chosen:
            painter.fillRect(area, theme.colour("sel"))
            painter.fillRect(QRect(area.x(), area.y(), 2, area.height()), theme.colour("acc"))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(area, theme.colour("hover"))
        if isinstance(entry, _Group):
            self._group(painter, area, entry)
        else:
            self._entry(painter, area, entry, chosen)
        if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
            painter.setPen(QPen(theme.colour("acc"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(area.adjusted(1, 1, -1, -1))

    def _group(self, painter: QPainter, area: QRect, group: _Group) -> None:
        dpr = painter.device().devicePixelRatioF()
        arrow = icons.pixmap("down" if group.open else "right", "t2", 14, dpr)
        painter.drawPixmap(area.x() + 15, area.y() + 7, arrow)
        painter.setFont(theme.font(12, 600))
        painter.setPen(theme.colour("t2"))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area.adjusted(36, 0, 0, 0), middle, group.title)
        x = 36 + painter.fontMetrics().horizontalAdvance(group.title) + 8
        painter.setFont(theme.font(12))
        painter.setPen(theme.colour("t3"))
        painter.drawText(area.adjusted(x, 0, 0, 0), middle, str(group.count))

    def _entry(self, painter: QPainter, area: QRect, entry: _Entry, chosen: bool) -> None:
        dpr = painter.device().devicePixelRatioF()
        name = entry.info.icon if (icons.FOLDER / f"{entry.info.icon}.svg").exists() else "launch"
        painter.drawPixmap(
            area.x() + 16, area.y() + 14, icons.pixmap(name, "acc" if chosen else "t2", 20, dpr)
        )
        width = max(0, area.right() - 16 - area.x() - 48)
        beside = width  # of the title, whose line has the tag
        if entry.tag:
            beside = max(0, self._tag(painter, area, area.right() - 16, entry.tag) - area.x() - 48)
        painter.setFont(theme.font(13, 500))
        painter.setPen(theme.colour("t1"))
        elide, middle = Qt.TextElideMode.ElideRight, Qt.AlignmentFlag.AlignVCenter
        title = painter.fontMetrics().elidedText(entry.info.title, elide, beside)
        painter.drawText(QRect(area.x() + 48, area.y() + 6, beside, 20), middle, title)
        painter.setFont(theme.font(12))
        painter.setPen(theme.colour("t2" if chosen else "t3"))
        summary = painter.fontMetrics().elidedText(entry.info.summary, elide, width)
        painter.drawText(QRect(area.x() + 48, area.y() + 25, width, 16), middle, summary)

    def _tag(self, painter: QPainter, area: QRect, right: int, text: str) -> int:
        painter.setFont(theme.font(11))
        wide = painter.fontMetrics().horizontalAdvance(text) + 12
        box = QRect(right - wide, area.y() + 6, wide, 18)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("hover"))
        painter.drawRoundedRect(box, 3, 3)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(theme.colour("t2"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        return box.left() - 8


class _List(QListView):
    """A click on a group folds it, as Left does on one of its workloads; arrows go over workloads."""

    folded = Signal(object)
    unfold_wanted = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.currentIndex().row()
        if event.key() == Qt.Key.Key_Left and row > 0:
            above = (self.model().index(i, 0).data(_DATA) for i in range(row, -1, -1))
            self.folded.emit(next(entry for entry in above if isinstance(entry, _Group)))
        elif event.key() == Qt.Key.Key_Right:
            self.unfold_wanted.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        group = self.indexAt(event.position().toPoint()).data(_DATA)
        if isinstance(group, _Group):
            self.folded.emit(group)
            return
        super().mousePressEvent(event)


class Gallery(Surface):
    """Workloads by group. `chosen` with a workload's name."""

    chosen = Signal(str)

    def __init__(
        self, infos: Sequence[WorkloadInfo], last_used: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__("raised", parent=parent)
        self._infos, self._last, self._tag = list(infos), last_used, ""
        self._quiet = False  # while the list is changed by us
        self._groups: dict[str, _Group] = {}
        self.field = QLineEdit()
        self.field.setPlaceholderText(f"Search {len(self._infos)} workloads")
        self.field.setAccessibleName("Search workloads")
        search = QAction(self.field)
        self.field.addAction(search, QLineEdit.ActionPosition.LeadingPosition)
        search.setIcon(icons.icon("search", "t3", 14))
        theme.changed.connect(self._dress)
        self._search_action = search
        self._key = chip("/", "key", self.field)
        self.field.textChanged.connect(self._fill)
        self._filter = Button("All", icon="filter")
        self._filter.clicked.connect(self._ask_tag)
        self._filter.setAccessibleDescription("Show workloads with a tag only")
        self.box.addLayout(row(self.field, self._filter, margins=(16, 12, 16, 12)))
        self.box.addWidget(Hairline())
        self.list = _List()
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setAccessibleName("Workloads")
        self.list.setMouseTracking(True)
        self.list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._model = QStandardItemModel(self)
        self.list.setModel(self._model)
        self.list.setItemDelegate(_Delegate(self.list))
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.list.clicked.connect(self._on_current)
        self.list.folded.connect(self._fold)
        self.list.unfold_wanted.connect(self._unfold)
        self.box.addWidget(self.list, 1)
        self._fill()

    def choose(self, name: str | None) -> None:
        """Mark a workload without telling; None marks none."""
        self._quiet = True
        self.list.clearSelection()
        self.list.setCurrentIndex(QModelIndex())
        for i in range(self._model.rowCount()):
            entry = self._model.index(i, 0).data(_DATA)
            if isinstance(entry, _Entry) and entry.info.name == name:
                self.list.setCurrentIndex(self._model.index(i, 0))
        self._quiet = False

    def current(self) -> str | None:
        entry = self.list.currentIndex().data(_DATA)
        return entry.info.name if isinstance(entry, _Entry) else None

    def set_last_used(self, name: str) -> None:
        """Which one carries the tag."""
        self._last = name
        self._fill()

    def _dress(self) -> None:
        self._search_action.setIcon(icons.icon("search", "t3", 14))
        self.list.viewport().update()

    def _fits(self, info: WorkloadInfo) -> bool:
        typed = self.field.text().strip().casefold()
        words = " ".join((info.name, info.title, info.summary, info.group, *info.tags)).casefold()
        return (not self._tag or self._tag in info.tags) and all(word in words for word in typed.split())

    def _fill(self, _typed: str = "") -> None:
        chosen, self._quiet = self.current(), True
        self._model.clear()
        shown: dict[str, list[WorkloadInfo]] = {}
        for info in filter(self._fits, self._infos):
            shown.setdefault(info.group, []).append(info)
        for title, members in shown.items():
            group = self._groups.setdefault(title, _Group(title, 0))
            group.count = len(members)
            self._add(group, title, Qt.ItemFlag.NoItemFlags)
            for info in members if group.open else ():
                tag = "last used" if info.name == self._last else next(iter(info.tags), "")
                flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
                self._add(_Entry(info, tag), info.title, flags)
        self.choose(chosen)
        self._key.setVisible(not self.field.text())

    def _add(self, data: object, text: str, flags: Qt.ItemFlag) -> None:
        item = QStandardItem(text)
        item.setData(data, _DATA)
        item.setFlags(flags)
        if isinstance(data, _Entry):
            item.setData(data.info.summary, Qt.ItemDataRole.AccessibleDescriptionRole)
            item.setToolTip(tip(data.info.summary))
        self._model.appendRow(item)

    def _fold(self, group: _Group) -> None:
        group.open = not group.open
        self._fill()

    def _unfold(self) -> None:
        for group in self._groups.values():
            group.open = True
        self._fill()

    def _on_current(self, index: QModelIndex, _before: object = None) -> None:
        entry = index.data(_DATA)
        if isinstance(entry, _Entry) and not self._quiet:
            self.chosen.emit(entry.info.name)

    def _ask_tag(self) -> None:
        menu = QMenu(self)
        for tag in ("", *sorted({tag for info in self._infos for tag in info.tags})):
            action = menu.addAction(tag or "All")
            action.setCheckable(True)
            action.setChecked(tag == self._tag)
            action.triggered.connect(lambda _=False, tag=tag: self._choose_tag(tag))
        menu.popup(self._filter.mapToGlobal(QPoint(0, self._filter.height())))

    def _choose_tag(self, tag: str) -> None:
        self._tag = tag
        self._filter.setText(tag or "All")
        self._fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.box.activate()
        self._key.adjustSize()
        self._key.move(self.field.width() - self._key.width() - 8, (28 - self._key.height()) // 2)
