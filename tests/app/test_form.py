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
from profiler.catalog import Gpu, Machine, Setting


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
        # segments are of one width: the longest word has to fit into each
        (setting("h", "choice", "small", choices=("tiny", "small", "medium", "large")), ListField),
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


def test_a_folded_group_opens_for_good_and_for_its_fields(qtbot: QtBot, dark: None) -> None:
    form = Form()
    qtbot.addWidget(form)
    rows = [setting("a", "int", 5), *(setting(name, "int", 1, group="Faults") for name in "bc")]
    form.show_settings(rows, folded=("Faults",))
    form.show()
    heading = form.folds["Faults"]
    assert form.fields["a"].isVisible() and not form.fields["b"].isVisible()
    assert heading.accessibleName() == "Faults, folded"
    heading.show_note("2 to order")
    assert heading.accessibleDescription() == "2 to order"
    heading.setFocus()
    qtbot.keyClick(heading, Qt.Key.Key_Space)
    assert form.fields["c"].isVisible() and heading.accessibleName() == "Faults, open"
    form.show_settings(rows, folded=("Faults",))  # another form: what was opened stays open
    assert form.fields["b"].isVisible()
    form.folds["Faults"].click()
    assert not form.fields["b"].isVisible()
    form.focus("b")
    assert form.fields["b"].isVisible()


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


@pytest.fixture
def images(page: WorkloadPage) -> WorkloadPage:
    page.show_workload(catalog.get("image_classification"))
    return page


def test_faults_say_what_they_bring(images: WorkloadPage) -> None:
    heading = images.form.folds["Faults"]
    assert not heading.isChecked() and "0 is off" in heading.note()
    for fault in map(catalog.fault, images.info.faults if images.info else ()):
        assert fault.summary in images.form.hints[fault.name].text()
    hint = images.form.hints["slow_storage"].text()
    assert "input-bound" in hint and "workers\u00a04" in hint
    images.form.set_values({"slow_storage": 2.0})
    images._on_changed("slow_storage")
    assert heading.note() == "Slow storage 2"
    assert images.changed_settings()["slow_storage"] == 2.0
    images.form.set_values({"slow_storage": 11.0})
    images._on_changed("slow_storage")
    assert images.reason() == ("slow_storage", "Slow storage: 10 or less")
    assert "10 or less" in heading.note()


def test_a_field_that_is_asked_for_comes_into_view(images: WorkloadPage, qtbot: QtBot) -> None:
    images.resize(700, 400)
    images.show()
    field = images.form.fields["slow_storage"]
    assert not field.isVisible()
    images.form.focus("slow_storage")
    qtbot.waitUntil(lambda: not field.visibleRegion().isEmpty())


def test_what_the_machine_lacks_stands_beside_its_field(images: WorkloadPage) -> None:
    images.form.set_values({"precision": "float16"})
    images._on_changed("precision")
    assert images.reason() == ("", "")  # nobody has looked yet
    images.show_machine(Machine(()))
    assert images.reason()[0] == "precision" and "needs a GPU" in images.reason()[1]
    assert "needs a GPU" in images.form.hints["precision"].text()
    device = images.form.fields["device"]
    assert isinstance(device, ListField)
    assert [device.itemText(i) for i in range(device.count())] == ["auto", "cpu"]
    images.show_machine(Machine((Gpu("NVIDIA H200", 9.0), Gpu("NVIDIA H200", 9.0))))
    assert images.reason() == ("", "")
    assert [device.itemText(i) for i in range(device.count())] == ["auto", "cpu", "cuda:0", "cuda:1"]
    images.form.set_values({"device": "cuda:1"})
    images._on_changed("device")
    assert images.form.hints["device"].text() == "NVIDIA H200"
    images.show_machine(Machine((Gpu("Tesla T4", 7.5),)))
    assert "there is no cuda:1" in images.reason()[1]
    images.form.set_values({"device": "cuda:0", "precision": "tf32"})
    images._on_changed("device")
    assert "Tesla T4 has no tf32" in images.reason()[1]


def test_every_wrong_field_says_why_at_once(images: WorkloadPage) -> None:
    images.show_machine(Machine(()))
    images.form.set_values({"batch_size": 0, "device": "cuda:0"})
    images._on_changed("device")
    assert images.form.hints["batch_size"].text() == "1 or more"
    assert "no GPU here" in images.form.hints["device"].text()
    assert images.reason()[0] == "batch_size"  # the first in the form


def test_entries_are_kept_while_another_workload_is_shown(page: WorkloadPage) -> None:
    page.form.set_values({"steps": 77})
    page.show_workload(catalog.get("language_model"))
    page.show_workload(catalog.get("input_starved"))
    assert page.settings()["steps"] == 77
