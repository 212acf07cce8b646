"""Colours, type sizes and distances of the window: the values of the design, in both themes.

A stage keeps its fill in both themes; its edge is the colour of its curve and of its
name. Contrasts are checked by a test.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """How a stage is drawn; `hatch`: slash, backslash, vertical, dots, cross, horizontal, none."""

    fill: str
    edge: str
    hatch: str
    ink: str  # text on the fill


@dataclass(frozen=True, slots=True)
class Tokens:
    """The colours of one theme."""

    dark: bool
    chrome: str
    base: str
    raised: str
    inset: str
    hover: str
    sel: str
    acctint: str
    oktint: str
    warntint: str
    errtint: str
    line: str
    line2: str
    ctl: str
    grid: str
    t1: str
    t2: str
    t3: str
    acc: str
    accfill: str
    ok: str
    warn: str
    err: str
    dis: str
    m1: str
    m2: str
    m3: str
    sequential: tuple[str, ...]
    stages: dict[str, Stage]


_FILLS = {
    "data": ("#E69F00", "#FFC14D", "#936400", "slash", "#101317"),
    "h2d": ("#56B4E9", "#8CCBF2", "#1A72A6", "backslash", "#101317"),
    "forward": ("#0072B2", "#4BA3DB", "#00588A", "none", "#FFFFFF"),
    "backward": ("#CC79A7", "#E3A5C6", "#9A4675", "vertical", "#101317"),
    "optimizer": ("#009E73", "#3CC79E", "#006B4C", "dots", "#101317"),
    "communication": ("#F0E442", "#F7EE84", "#786E00", "cross", "#101317"),
    "sync": ("#D55E00", "#F5904A", "#A34700", "horizontal", "#101317"),
    "other": ("#858E98", "#AAB2BB", "#5C656F", "none", "#101317"),
}


def _stages(dark: bool) -> dict[str, Stage]:
    return {
        name: Stage(fill, dark_edge if dark else light_edge, hatch, ink)
        for name, (fill, dark_edge, light_edge, hatch, ink) in _FILLS.items()
    }


DARK = Tokens(
    dark=True,
    chrome="#101317", base="#15191E", raised="#1A1F25", inset="#11151A", hover="#222930", sel="#262B45",
    acctint="#22263D", oktint="#16291F", warntint="#2B2515", errtint="#301C1C",
    line="#2A3138", line2="#3B444D", ctl="#69747F", grid="#232A31",
    t1="#E7EBEF", t2="#A9B3BE", t3="#8B97A3", acc="#9AA2FF", accfill="#5A61DB",
    ok="#55C795", warn="#E5B84B", err="#FF8079", dis="#5E6973",
    m1="#9AA2FF", m2="#B4BDC6", m3="#62C2BD",
    sequential=("#6E66E6", "#8E63C8", "#BC66B2", "#E38191", "#F5B97F", "#FFE9A8"),
    stages=_stages(True),
)

LIGHT = Tokens(
    dark=False,
    chrome="#EDEFF2", base="#F6F7F9", raised="#FFFFFF", inset="#FFFFFF", hover="#EBEEF2", sel="#E4E6FB",
    acctint="#EEEFFC", oktint="#E6F3EC", warntint="#FBF2DC", errtint="#FBE9E7",
    line="#DCE0E5", line2="#B9C0C8", ctl="#868F98", grid="#ECEEF1",
    t1="#14191F", t2="#47525D", t3="#5A6571", acc="#4A4FD0", accfill="#4A4FD0",
    ok="#08704A", warn="#835500", err="#B92D26", dis="#9AA3AC",
    m1="#4A4FD0", m2="#5A6571", m3="#0F7672",
    sequential=("#33237A", "#5F2C91", "#8E2F8C", "#B83C64", "#C4622D", "#9A7400"),
    stages=_stages(False),
)

# Logical pixels.
RAIL_WIDTH, RAIL_ITEM = 64, 56
MENU_BAR, RUN_BAR, VERDICT_STRIP, PANE_HEADER, SCREEN_HEADING, STATUS_BAR = 32, 48, 72, 32, 72, 28
ROW, TABLE_HEAD, FORM_ROW, FIELD, PRIMARY, CHIP, TAG = 28, 24, 40, 28, 40, 20, 16
GUTTER_LEFT, GUTTER_RIGHT = 160, 120
PADDING, GAP = 16, 8
