"""The one table: empty cells, copying, and a selection that stays while values change."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.tokens import ROW, TABLE_HEAD
from app.widgets.table import Column, Table, TableModel


@dataclass(frozen=True)
class Item:
    name: str
    ms: str
    share: float | None = None


COLUMNS = [
    Column[Item]("Stage", lambda i: i.name, mark="swatch",
                 value=lambda i: i.name if i.name == "data" else None),
    Column[Item]("ms/step", lambda i: i.ms, right=True, tooltip=lambda i: "" if i.ms else "not measured"),
    Column[Item]("Share", lambda i: "", mark="share", value=lambda i: i.share, stage=lambda i: "data"),
]
ITEMS = (Item("data", "1\u00a0224", 0.7), Item("a|b", ""), Item("step", "3.0", 1.0))


@pytest.fixture
def table(qtbot: QtBot, dark: None) -> Table:
    result = Table(COLUMNS, "Stages", sum_row=True, highlight=lambda i: i.name == "data")
    qtbot.addWidget(result)
    result.resize(400, 200)
    result.show_rows(ITEMS)
    result.show()
    return result


def test_it_is_as_high_as_its_rows(table: Table) -> None:
    assert table.height() == TABLE_HEAD + 3 * ROW
    table.show_rows(ITEMS[:1])
    assert table.height() == TABLE_HEAD + ROW


def test_copies_for_sheets_and_for_markdown(table: Table) -> None:
    table.copy()
    head, values = "Stage\tms/step\tShare\n", "data\t1 224\t\na|b\t\t\nstep\t3.0\t\n"
    assert QGuiApplication.clipboard().text() == head + values
    table.selectRow(1)
    table.copy(markdown=True)
    assert QGuiApplication.clipboard().text() == (
        "| Stage | ms/step | Share |\n| --- | ---: | --- |\n| a\\|b |  |  |\n")


def test_a_missing_value_is_an_empty_cell_with_its_reason(table: Table) -> None:
    model = table.model_
    cell = model.index(1, 1)
    assert model.data(cell) == ""
    assert model.data(cell, 3) == "not measured"  # Qt.ItemDataRole.ToolTipRole
    assert model.data(model.index(0, 1), 3) is None


def test_the_selection_stays_while_values_change(table: Table) -> None:
    table.selectRow(2)
    table.show_rows((ITEMS[0], ITEMS[1], Item("step", "4.0", 1.0)))
    assert [i.row() for i in table.selectionModel().selectedRows()] == [2]


def test_the_same_rows_change_nothing(table: Table, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(table.model_.dataChanged):
        table.show_rows(tuple(ITEMS))


def test_it_paints_in_both_forms(table: Table) -> None:
    assert not table.grab().isNull()


def test_the_model_passes_qts_own_tester(qapp: object, qtmodeltester: object) -> None:
    model: TableModel[Item] = TableModel(COLUMNS)
    model.replace(ITEMS)
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_a_name_is_no_formula_where_the_table_is_pasted() -> None:
    model = TableModel([Column("name", lambda row: row), Column("ms", lambda row: "-1.5")])
    model.replace(["=cmd|'/C calc'!A0", "aten::mm"])
    assert model.as_text() == "name\tms\n'=cmd|'/C calc'!A0\t-1.5\naten::mm\t-1.5\n"
