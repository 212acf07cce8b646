"""The style sheet: shape of controls, and text roles. Colours that Qt's palette knows are in theme.py.

Roles are dynamic properties: `role` on labels (see `_ROLES`), `kind` on buttons,
`surface` on plain widgets, `state` (warning, error) on fields, `tone` on text.
"""

from __future__ import annotations

from app.tokens import Tokens
from profiler.paths import ASSETS

# role: (pixels, weight, colour)
_ROLES = {
    "report": (24, 600, "t1"),
    "heading": (20, 600, "t1"),
    "name": (15, 600, "t1"),
    "strong": (13, 500, "t1"),
    "body": (13, 400, "t1"),
    "label": (13, 400, "t2"),
    "title": (12, 600, "t1"),
    "group": (12, 600, "t2"),
    "value": (12, 600, "t1"),
    "cell": (12, 400, "t1"),
    "sub": (12, 400, "t2"),
    "hint": (12, 400, "t3"),
    "caption": (11, 400, "t3"),
}
MONO = ("JetBrains Mono", "Cascadia Mono", "SF Mono", "Noto Sans Mono", "DejaVu Sans Mono")
_TONES = ("t1", "t2", "t3", "acc", "ok", "warn", "err", "dis")


def sheet(t: Tokens) -> str:
    """The application's style sheet in one theme."""
    parts = (_text, _surfaces, _buttons, _fields, _choices, _bars, _views, _chips)
    return "\n".join(part(t) for part in parts)


def _asset(name: str) -> str:
    return f"url({(ASSETS / 'icons' / name).as_posix()}.svg)"


def _text(t: Tokens) -> str:
    rules = [
        f'QLabel[role="{role}"] {{ font-size: {size}px; font-weight: {weight}; color: {getattr(t, ink)}; }}'
        for role, (size, weight, ink) in _ROLES.items()
    ]
    rules.append(f'*[mono="true"] {{ font-family: {", ".join(chr(34) + f + chr(34) for f in MONO)}; }}')
    rules += [f'QLabel[tone="{tone}"] {{ color: {getattr(t, tone)}; }}' for tone in _TONES]
    return "\n".join(rules)


def _surfaces(t: Tokens) -> str:
    rules = [
        f'QWidget[surface="{name}"] {{ background: {getattr(t, name)}; }}'
        for name in ("chrome", "base", "raised", "inset", "hover", "sel", "line", "warntint", "errtint")
    ]
    rules.append(f"""
QToolTip {{ background: {t.raised}; color: {t.t1}; border: 1px solid {t.line2}; padding: 4px 6px;
  font-size: 12px; }}
QFrame[surface="popup"] {{ background: {t.raised}; border: 1px solid {t.line2}; border-radius: 6px; }}
QSplitter::handle {{ background: {t.line}; }}
QScrollArea, QStackedWidget {{ border: 0; background: transparent; }}
QScrollArea > QWidget > QWidget[surface="none"] {{ background: transparent; }}""")
    return "\n".join(rules)


def _buttons(t: Tokens) -> str:
    press = "#4F56C8" if t.dark else "#3F44B5"
    return f"""
QPushButton {{ background: transparent; color: {t.t1}; border: 1px solid {t.line2}; border-radius: 4px;
  padding: 0 11px; min-height: 26px; font-size: 12px; font-weight: 500; }}
QPushButton:hover {{ background: {t.hover}; }}
QPushButton:pressed {{ background: {t.sel}; }}
QPushButton:focus {{ border: 2px solid {t.acc}; padding: 0 10px; min-height: 24px; }}
QPushButton:disabled {{ color: {t.dis}; border-color: {t.line2}; background: transparent; }}
QPushButton[kind="primary"] {{ background: {t.accfill}; color: #FFFFFF; border-color: {t.accfill}; }}
QPushButton[kind="primary"]:hover, QPushButton[kind="primary"]:pressed {{ background: {press}; }}
QPushButton[kind="primary"]:focus {{ border-color: {t.t1 if t.dark else t.acctint}; }}
QPushButton[kind="primary"]:disabled {{ background: {t.hover}; color: {t.t3}; border-color: {t.line2}; }}
QPushButton[kind="flat"] {{ border-color: transparent; color: {t.t2}; padding: 0 7px; }}
QPushButton[kind="flat"]:focus {{ border-color: {t.acc}; padding: 0 6px; }}
QPushButton[kind="flat"]:disabled {{ color: {t.dis}; }}
QPushButton[kind="danger"] {{ color: {t.err}; border-color: {t.err}; }}
QPushButton[kind="danger"]:hover {{ background: {t.errtint}; }}
QPushButton[kind="link"] {{ border-color: transparent; color: {t.acc}; padding: 0 3px;
  min-height: 18px; font-weight: 400; }}
QPushButton[kind="link"]:hover {{ background: transparent; text-decoration: underline; }}
QPushButton[kind="link"]:focus {{ border-color: {t.acc}; padding: 0 2px; min-height: 16px; }}
QPushButton[big="true"] {{ min-height: 38px; font-size: 13px; }}
QPushButton[big="true"]:focus {{ min-height: 36px; }}
QPushButton[kind="segment"] {{ border: 1px solid {t.ctl}; border-left-width: 0; border-radius: 0;
  color: {t.t2}; padding: 0 11px; background: {t.inset}; font-weight: 400; }}
QPushButton[kind="segment"]:hover {{ background: {t.hover}; }}
QPushButton[kind="segment"]:checked {{ background: {t.sel}; color: {t.t1}; font-weight: 500; }}
QPushButton[kind="segment"]:disabled {{ color: {t.dis}; border-color: {t.line2}; }}
QPushButton[kind="segment"][place="first"] {{ border-left-width: 1px; border-top-left-radius: 4px;
  border-bottom-left-radius: 4px; }}
QPushButton[kind="segment"][place="last"] {{ border-top-right-radius: 4px; border-bottom-right-radius: 4px; }}
QPushButton[kind="segment"]:focus {{ border: 2px solid {t.acc}; padding: 0 10px 0 9px; }}
QPushButton[own="true"], QPushButton[own="true"][kind], QPushButton[own="true"][kind]:disabled,
QPushButton[own="true"]:disabled {{ color: transparent; }}
QPushButton[kind="segment"][place="first"]:focus {{ padding: 0 10px; }}"""


def _fields(t: Tokens) -> str:
    theme = "dark" if t.dark else "light"
    fields = "QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit"

    def each(suffix: str) -> str:
        return ", ".join(f"{field}{suffix}" for field in fields.split(", "))

    return f"""
{fields} {{ background: {t.inset}; color: {t.t1}; border: 1px solid {t.ctl}; border-radius: 4px;
  padding: 0 7px; min-height: 26px; font-size: 12px; selection-background-color: {t.accfill};
  selection-color: #FFFFFF; }}
{each(":disabled")} {{ border-color: {t.line2}; color: {t.dis}; background: {t.raised}; }}
{each('[state="warning"]')} {{ border: 1px solid {t.warn}; }}
{each('[state="error"]')} {{ border: 2px solid {t.err}; padding: 0 6px; min-height: 24px; }}
{each(":focus")} {{ border: 2px solid {t.acc}; padding: 0 6px; min-height: 24px; }}
QComboBox::drop-down {{ border: 0; width: 24px; }}
QComboBox::down-arrow {{ image: {_asset(f"control_down_{theme}")}; width: 12px; height: 12px; }}
QComboBox::down-arrow:disabled {{ image: {_asset(f"control_down_off_{theme}")}; }}
QComboBox QAbstractItemView {{ background: {t.raised}; border: 1px solid {t.line2}; padding: 4px; outline: 0;
  selection-background-color: {t.sel}; selection-color: {t.t1}; }}
QComboBox QAbstractItemView::item {{ min-height: 26px; padding: 0 6px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: 0; background: transparent; width: 20px;
  subcontrol-origin: border; }}
QAbstractSpinBox::up-button {{ subcontrol-position: top right; margin: 3px 2px 0 0; height: 11px; }}
QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; margin: 0 2px 3px 0; height: 11px; }}
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {t.hover};
  border-radius: 2px; }}
QAbstractSpinBox::up-arrow {{ image: {_asset(f"control_up_{theme}")}; width: 10px; height: 10px; }}
QAbstractSpinBox::down-arrow {{ image: {_asset(f"control_down_{theme}")}; width: 10px; height: 10px; }}
QAbstractSpinBox::up-arrow:disabled {{ image: {_asset(f"control_up_off_{theme}")}; }}
QAbstractSpinBox::down-arrow:disabled {{ image: {_asset(f"control_down_off_{theme}")}; }}
QAbstractSpinBox QLineEdit, QComboBox QLineEdit {{ border: 0; padding: 0; background: transparent;
  min-height: 20px; }}

QPlainTextEdit {{ padding: 4px; }}
QLineEdit[bare="true"] {{ border: 0; padding: 0; background: transparent; font-size: 15px; }}"""


def _choices(t: Tokens) -> str:
    theme = "dark" if t.dark else "light"
    return f"""
QCheckBox, QRadioButton {{ font-size: 12px; color: {t.t1}; spacing: 8px; min-height: 20px; }}
QCheckBox:disabled, QRadioButton:disabled {{ color: {t.t3}; }}
QCheckBox::indicator {{ width: 14px; height: 14px; border: 1px solid {t.ctl}; border-radius: 3px;
  background: {t.inset}; }}
QCheckBox::indicator:hover {{ background: {t.hover}; }}
QCheckBox::indicator:checked {{ background: {t.accfill}; border-color: {t.accfill};
  image: {_asset("control_check")}; }}
QCheckBox::indicator:checked:disabled {{ background: {t.raised}; border-color: {t.line2};
  image: {_asset(f"control_check_off_{theme}")}; }}
QCheckBox::indicator:disabled {{ border-color: {t.line2}; background: {t.raised}; }}
QCheckBox::indicator:focus {{ border: 2px solid {t.acc}; width: 12px; height: 12px; }}"""


def _bars(t: Tokens) -> str:
    return f"""
QMenuBar {{ background: {t.chrome}; color: {t.t1}; border-bottom: 1px solid {t.line}; font-size: 12px;
  padding: 0 8px; }}
QMenuBar::item {{ background: transparent; padding: 8px 10px; margin: 0; }}
QMenuBar::item:selected {{ background: {t.hover}; }}
QMenuBar::item:pressed {{ background: {t.sel}; }}
QMenu {{ background: {t.raised}; color: {t.t1}; border: 1px solid {t.line2}; padding: 4px 0;
  font-size: 12px; }}
QMenu::item {{ padding: 6px 28px 6px 28px; background: transparent; }}
QMenu::item:selected {{ background: {t.sel}; }}
QMenu::item:disabled {{ color: {t.dis}; }}
QMenu::separator {{ height: 1px; background: {t.line}; margin: 4px 0; }}
QMenu::indicator {{ width: 12px; height: 12px; margin-left: 9px; }}
QMenu::indicator:checked {{ image: {_asset(f"control_check_on_{'dark' if t.dark else 'light'}")}; }}
QPushButton[kind="palette"] {{ background: {t.inset if t.dark else t.raised}; border: 1px solid {t.line2};
  color: {t.t3}; text-align: left; min-height: 22px; padding: 0 8px; font-weight: 400; }}
QPushButton[kind="palette"]:focus {{ border: 2px solid {t.acc}; padding: 0 7px; min-height: 20px; }}
QScrollBar:vertical {{ background: transparent; width: 10px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 10px; margin: 0; }}
QScrollBar::handle {{ background: {t.line2}; border-radius: 3px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 32px; }}
QScrollBar::handle:horizontal {{ min-width: 32px; }}
QScrollBar::handle:hover {{ background: {t.ctl}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}"""


def _views(t: Tokens) -> str:
    return f"""
QAbstractItemView {{ background: {t.raised}; alternate-background-color: {t.raised}; border: 0; outline: 0;
  gridline-color: {t.grid}; selection-background-color: {t.sel}; selection-color: {t.t1}; font-size: 12px; }}
QTableView::item {{ padding: 0 8px; border-bottom: 1px solid {t.grid}; }}
QHeaderView {{ background: {t.raised}; border: 0; }}
QHeaderView::section {{ background: {t.raised}; color: {t.t3}; border: 0; border-bottom: 1px solid {t.line};
  padding: 0 8px; font-size: 11px; font-weight: 400; min-height: 23px; }}
QTableCornerButton::section {{ background: {t.raised}; border: 0; }}
QDockWidget::title {{ background: {t.raised}; padding: 8px 16px; }}"""


def _chips(t: Tokens) -> str:
    rules = [
        f"""
QLabel[chip="plain"] {{ border: 1px solid {t.line2}; border-radius: 4px; color: {t.t2}; font-size: 11px;
  padding: 0 6px; min-height: 18px; max-height: 18px; }}
QLabel[chip="tag"] {{ background: {t.hover}; border-radius: 3px; color: {t.t2}; font-size: 11px;
  padding: 0 5px;  min-height: 16px; max-height: 16px; }}
QLabel[chip="key"] {{ border: 1px solid {t.line2}; border-radius: 3px; color: {t.t3}; font-size: 11px;
  padding: 0 4px;  min-height: 16px; max-height: 16px; }}"""
    ]
    tints = (("ok", t.oktint), ("warn", t.warntint), ("err", t.errtint), ("acc", t.acctint))
    for tone, tint in tints:
        ink = getattr(t, tone)
        rules.append(
            f'QLabel[chip="{tone}"] {{ background: {tint}; border: 1px solid {ink}; border-radius: 4px; '
            f"color: {ink}; font-size: 11px; padding: 0 6px; min-height: 18px; max-height: 18px; }}"
        )
    return "\n".join(rules)
