"""The form of a workload: its heading with presets, its settings, and why it cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.spec import LaunchSpec
from app.tokens import SCREEN_HEADING
from app.widgets.basic import ElidedLabel, Surface, row, strip
from app.widgets.button import Button, Segments
from app.widgets.fields import NBSP, ListField
from app.widgets.form import Form
from app.widgets.scroll import scrolled
from profiler import catalog
from profiler.catalog import FAULTS, UNKNOWN, Machine, Setting, WorkloadInfo
from profiler.rules.words import listed, verdict_title
from profiler.rules.words import setting as told

NAME, DATA = "run_name", "run_data"  # rows that are no settings of the workload
CUSTOM = "custom"
_PRESETS = (("smallest", "Smallest"), ("typical", "Typical"), ("stress", "Stress"), (CUSTOM, "Custom"))


def _row(name: str, kind: str, text: str, label: str, group: str) -> Setting:
    return Setting(name, kind, "", text, "", group, None, None, (), label)


class Page(Surface):
    """A heading of 72 px over a form that scrolls: what the three modes of Launch have in common."""

    edited = Signal()

    def __init__(
        self, title: str = "", text: str = "", below: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__("raised", parent=parent)
        self.title = ElidedLabel(title, "heading")
        self.text = ElidedLabel(text, "sub")
        self.reset_button = Button("Reset", kind="flat", icon="reset")
        self.reset_button.clicked.connect(self.reset)
        self.buttons: QHBoxLayout = row(self.reset_button)
        upper = row(spacing=8)
        upper.addWidget(self.title, 1)
        upper.addLayout(self.buttons)
        names = QVBoxLayout()  # the text has the whole width: it is longer than the title
        names.setContentsMargins(0, 0, 0, 0)
        names.setSpacing(2)
        names.addStretch(1)
        names.addLayout(upper)
        names.addWidget(self.text)
        names.addStretch(1)
        line = row(margins=(24, 0, 16, 0))
        line.addLayout(names, 1)
        self.box.addWidget(strip(line, SCREEN_HEADING))
        self.form = Form(below)
        scroll = scrolled(self.form)
        self.box.addWidget(scroll, 1)
        self.form.changed.connect(self._on_changed)
        # after a group that opened has been laid out
        self.form.wanted.connect(lambda f: QTimer.singleShot(0, f, lambda: scroll.ensureWidgetVisible(f)))

    def _on_changed(self, name: str) -> None:
        self.edited.emit()

    def reason(self) -> tuple[str, str]:
        """The first field that keeps Run from starting, and why; empty when none does."""
        raise NotImplementedError

    def spec(self) -> LaunchSpec:
        """What to start, without the capture's part."""
        raise NotImplementedError

    def reset(self) -> None:
        """The values of a first start."""
        raise NotImplementedError

    def focus_first(self) -> None:
        """Put the cursor where a user begins."""
        first = next(iter(self.form.fields.values()), None)
        if first is not None:
            first.setFocus()


class WorkloadPage(Page):
    """One workload at a time; the entries of each are kept while the window is open."""

    data_entered = Signal(str, str)  # the workload's name and a path: `show_data` tells what is wrong with it

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.info: WorkloadInfo | None = None
        self.machine = UNKNOWN
        self._kept: dict[str, dict[str, Any]] = {}
        self._errors: dict[str, str] = {}
        self._data: tuple[str, str, str] = ("", "", "")  # workload, path, what is wrong with it
        self.presets = Segments(_PRESETS, CUSTOM)
        self.presets.setAccessibleName("Size")
        self.presets.changed.connect(self._on_preset)
        self.buttons.insertWidget(0, self.presets)
        QWidget.setTabOrder(self.presets.button(CUSTOM), self.reset_button)

    def show_workload(self, info: WorkloadInfo, values: Mapping[str, Any] | None = None) -> None:
        """The form of a workload, with what was entered before, else its typical size."""
        if self.info is not None:
            self._kept[self.info.name] = self.form.values()
        self.info = info
        self.title.show_text(info.title)
        self.text.show_text(info.summary)
        rows: list[Setting] = [_row(NAME, "str", "what the run is called in lists", "Name", "Run")]
        rows += info.settings
        if info.data:
            rows.append(
                _row(DATA, "path", f"{info.data}; empty: made once and kept", "Own data", "Model and data")
            )
        order = {group: i for i, group in enumerate(catalog.GROUPS)}
        settings = sorted(rows, key=lambda s: order.get(s.group, len(order)))
        self.form.show_settings(
            settings, {"device": self._devices()}, after=self.reset_button, folded=(FAULTS,)
        )
        for name, _ in _PRESETS[:3]:
            self.presets.button(name).setEnabled(name in info.sizes)
        self.form.set_values(values or self._kept.get(info.name) or self._preset("typical"))
        self._check()
        self._ask_about_data()

    def show_machine(self, machine: Machine) -> None:
        """What the doctor found: its devices to choose from, and reasons where it lacks something."""
        if machine == self.machine:
            return
        self.machine = machine
        field = self.form.fields.get("device")
        if isinstance(field, ListField):
            field.set_entries(self._devices())
        self._on_changed("")

    def _devices(self) -> list[tuple[Any, str]]:
        gpus = self.machine.gpus
        count = 1 if gpus is None else len(gpus)
        return [(name, name) for name in ("auto", "cpu", *(f"cuda:{i}" for i in range(count)))]

    def _preset(self, name: str) -> dict[str, Any]:
        assert self.info is not None
        return {**self.info.defaults(), **self.info.sizes.get(name, {})}

    def settings(self) -> dict[str, Any]:
        """The workload's values; a field with an error has its default."""
        if self.info is None:
            return {}
        values = self.form.values()
        result = {setting.name: values.get(setting.name, setting.default) for setting in self.info.settings}
        # what does not apply is left as the workload has it
        for name in catalog.not_applicable(self.info, result, self.machine):
            result[name] = self.info.setting(name).default
        return result

    def changed_settings(self) -> dict[str, Any]:
        """Those that differ from the workload's own."""
        if self.info is None:
            return {}
        return {
            name: value for name, value in self.settings().items() if value != self.info.setting(name).default
        }

    def spec(self) -> LaunchSpec:
        assert self.info is not None
        values = self.form.values()
        data = values.get(DATA)
        return LaunchSpec(
            name=values.get(NAME) or "",
            workload=self.info.name,
            settings=self.changed_settings(),
            data=Path(data).expanduser() if data else None,
        )

    def reason(self) -> tuple[str, str]:
        name = next(iter(self._errors), "")
        return (name, f"{self.form.label_of(name)}: {self._errors[name]}") if name else ("", "")

    def reset(self) -> None:
        if self.info is not None:
            self.form.set_values({**self._preset("typical"), NAME: "", DATA: ""})
            self._on_changed("")

    def _on_preset(self, name: object) -> None:
        if name != CUSTOM:
            self.form.set_values(self._preset(str(name)))
        self._on_changed("")

    def _on_changed(self, name: str) -> None:
        self._check()
        self.edited.emit()
        self._ask_about_data()

    def _ask_about_data(self) -> None:
        if self.info is not None and (data := self.form.values().get(DATA)):
            self.data_entered.emit(self.info.name, data)

    def show_data(self, name: str, data: str, wrong: str) -> None:
        """What is wrong with the data of a workload, or nothing. It may come late: reading takes its time."""
        if self._data != (name, data, wrong):
            self._data = name, data, wrong
            self._check()
            self.edited.emit()

    def _check(self) -> None:
        """Reasons beside the fields, as typed."""
        if self.info is None:
            return
        values = self.settings()
        off = catalog.not_applicable(self.info, values, self.machine)
        errors = catalog.check(self.info, values, self.machine) | self._data_errors() | self.form.errors()
        shown = [name for name in self.form.fields if name in errors and name not in off]
        self._errors = errors = {name: errors[name] for name in shown}
        self.form.show_hints(
            errors=errors,
            warnings=catalog.advise(self.info, values, self.machine),
            off={name: self._why_off(name, why) for name, why in off.items()},
            notes={**self._device_note(values), **self._fault_notes(values)},
        )
        self._show_faults(values)
        matching = (
            name for name, _ in _PRESETS[:3] if name in self.info.sizes and values == self._preset(name)
        )
        self.presets.set_value(next(matching, CUSTOM) if not errors else CUSTOM)

    def _device_note(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The GPU behind the device's name, where it is known."""
        gpu = self.machine.gpu(values["device"])
        if gpu is not None:
            return {"device": gpu.name}
        on_cpu = self.machine.device(values["device"]) == "cpu"
        return {"device": "this machine's CPU: no GPU here"} if on_cpu and not self.machine.gpus else {}

    def _why_off(self, name: str, why: str) -> str:
        """A fault that cannot act says what it would do all the same."""
        assert self.info is not None
        faulty = name in self.info.faults
        return f"{catalog.fault(name).summary}.\n{why[:1].upper()}{why[1:]}" if faulty else why

    def _fault_notes(self, values: Mapping[str, Any]) -> dict[str, str]:
        """What each fault does and brings, and what cures it where that can be set here."""
        assert self.info is not None
        on_cpu, notes = self.machine.device(values["device"]) == "cpu", {}
        for fault in map(catalog.fault, self.info.faults):
            parts = [f"Brings {verdict_title(fault.on_cpu if on_cpu else fault.verdict).lower()}"]
            if fault.remedy:
                name, value = fault.remedy
                if name not in catalog.check(self.info, {**values, name: value}, self.machine):
                    parts.append(f"cured by {name}{NBSP}{told(value)}")
            notes[fault.name] = f"{fault.summary}.\n{listed(parts)}"
        return notes

    def _show_faults(self, values: Mapping[str, Any]) -> None:
        """Beside the heading of the faults, which is folded as a rule: which are on."""
        assert self.info is not None
        if (heading := self.form.folds.get(FAULTS)) is None:
            return
        label, names = self.form.label_of, self.info.faults
        wrong = listed(f"{label(name)}: {self._errors[name]}" for name in names if name in self._errors)
        on = listed(f"{label(name)} {values[name]:g}" for name in names if values[name])
        if wrong or on:
            heading.show_note(wrong or on, "err" if wrong else "warn")
        else:
            usual = "each with a known verdict: 0 is off, 1 the usual strength"
            heading.show_note(f"{len(names)} to order, {usual}")

    def _data_errors(self) -> dict[str, str]:
        data = self.form.values().get(DATA)
        if data and not Path(data).expanduser().exists():
            return {DATA: "there is no such file or folder"}
        name, path, wrong = self._data
        known = wrong and self.info is not None and (self.info.name, data) == (name, path)
        return {DATA: wrong} if known else {}
