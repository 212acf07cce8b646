"""Forms made from settings: fields, reasons beside them, and a wheel that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.panels.launch_workload import NAME, WorkloadPage
from app.widgets.fields import BoolField, ListField, NumberField, PathField, SegmentField, TextField
from app.widgets.form import Form, make_field
from profiler import catalog
from profiler.catalog import Setting


def setting(name: str, kind: str, default: object, **more: object) -> Setting:
    values = {
        "help": "what it does; and more",
        "unit": "",
        "group": "Run",
        "minimum": None,
        "maximum": None,
        "choices": (),
        "label": name.title(),
    } | more
    return Setting(name=name, type=kind, default=default, **values)  # type: ignore[arg-type]


def takes_wheel(widget: QWidget) -> bool:
    """Turn the wheel over a widget; whether it kept the event for itself."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle,
        widget.mapToGlobal(middle),
        QPoint(0, -120),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    widget.event(event)
    return event.isAccepted()


@pytest.fixture
def page(qtbot: QtBot, dark: None) -> Iterator[WorkloadPage]:
    page = WorkloadPage()
    qtbot.addWidget(page)
    page.show_workload(catalog.get("input_starved"))
    yield page


def test_each_type_has_its_field(qtbot: QtBot, dark: None) -> None:
    for described, kind in (
        (setting("a", "int", 3), NumberField),
        (setting("b", "float", 0.5), NumberField),
        (setting("c", "str", "x"), TextField),
        (setting("d", "bool", True), BoolField),
        (setting("e", "choice", "one", choices=("one", "two")), SegmentField),
        (
            setting(
                "f", "choice", "resnet18", choices=("resnet18", "resnet34", "resnet50", "resnet101", "x")
            ),
            ListField,
        ),
        (setting("g", "path", None), PathField),
    ):
        field = make_field(described)
        qtbot.addWidget(field)
        assert type(field) is kind
        assert field.value() == (described.default if described.default is not None else "")


def test_numbers_are_checked_as_typed(qtbot: QtBot, dark: None) -> None:
    field = NumberField(2000, "steps", 1, 10_000)
    qtbot.addWidget(field)
    assert field.lineEdit().text() == "2\u00a0000"
    for typed, reason in (
        ("", "whole number"),
        ("abc", "whole number"),
        ("1.5", "whole number"),
        ("0", "1 or more"),
        ("10 001", "or less"),
        ("10_000", ""),
    ):
        field.lineEdit().setText(typed)
        assert reason in field.error() if reason else not field.error(), typed
    field.stepBy(1)
    assert field.value() == 10_000  # arrows stay in range
    real = NumberField(5.0, "ms", 0.0, None, whole=False)
    qtbot.addWidget(real)
    for typed, fine in (("1e-3", True), ("nan", False), ("inf", False), ("-1", False), ("0.25", True)):
        real.lineEdit().setText(typed)
        assert bool(real.error()) is not fine, typed


def test_the_wheel_is_left_to_the_page(qtbot: QtBot, dark: None) -> None:
    form = Form()
    qtbot.addWidget(form)
    form.show_settings(
        [
            setting("a", "int", 5, minimum=0, maximum=9),
            setting("b", "float", 0.5),
            setting("c", "choice", "v0", choices=tuple(f"v{i}" for i in range(9))),
            setting("d", "choice", "x", choices=("x", "y")),
            setting("e", "bool", True),
        ]
    )
    form.show()
    before = form.values()
    for field in form.fields.values():
        field.setFocus()
        assert not takes_wheel(field)
    assert form.values() == before


def test_every_workload_gets_a_form(qtbot: QtBot, dark: None) -> None:
    page = WorkloadPage()
    qtbot.addWidget(page)
    for info in catalog.workloads():
        page.show_workload(info)
        assert set(page.form.fields) >= {s.name for s in info.settings}
        assert page.settings() == {**info.defaults(), **info.sizes.get("typical", {})}
        assert page.reason() == ("", "")
        for name, field in page.form.fields.items():
            assert field.accessibleName() == page.form.label_of(name)


def test_a_wrong_entry_gives_its_reason_and_a_right_one_takes_it_away(
    page: WorkloadPage, qtbot: QtBot
) -> None:
    field = page.form.fields["batch_size"]
    assert isinstance(field, NumberField)
    with qtbot.waitSignal(page.edited):
        field.selectAll()
        qtbot.keyClicks(field.lineEdit(), "0")
    assert page.reason() == ("batch_size", "Batch size: 1 or more")
    assert page.form.hints["batch_size"].text() == "1 or more"
    assert field.property("state") == "error"
    field.selectAll()
    qtbot.keyClicks(field.lineEdit(), "16")
    assert page.reason() == ("", "")
    assert not field.property("state")
    assert page.changed_settings()["batch_size"] == 16


def test_settings_that_mean_nothing_are_off_with_the_reason(page: WorkloadPage) -> None:
    assert not page.form.fields["prefetch_factor"].isEnabled()
    assert page.form.hints["prefetch_factor"].text() == "needs 1 worker or more"
    assert page.form.fields["workers"].property("state") == "warning"
    page.form.set_values({"workers": 2, "prefetch_factor": 4})
    page._on_changed("workers")
    assert page.form.fields["prefetch_factor"].isEnabled()
    assert page.settings()["prefetch_factor"] == 4
    page.form.set_values({"workers": 0})
    page._on_changed("workers")
    assert "prefetch_factor" not in page.changed_settings()


def test_presets_fill_in_and_own_values_are_custom(page: WorkloadPage) -> None:
    assert page.presets.value() == "typical"
    page.presets.button("smallest").click()
    assert page.settings()["steps"] == catalog.get("input_starved").sizes["smallest"]["steps"]
    assert page.presets.value() == "smallest"
    page.form.set_values({"steps": 77, NAME: "mine"})
    page._on_changed("steps")
    assert page.presets.value() == "custom"
    assert page.spec().name == "mine"
    page.reset()
    assert page.presets.value() == "typical" and page.spec().name == ""


def test_entries_are_kept_while_another_workload_is_shown(page: WorkloadPage) -> None:
    page.form.set_values({"steps": 77})
    page.show_workload(catalog.get("language_model"))
    page.show_workload(catalog.get("input_starved"))
    assert page.settings()["steps"] == 77
