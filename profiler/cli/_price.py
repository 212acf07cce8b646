"""The price of electricity, which only the user knows: commands tell no cost without it."""

from __future__ import annotations

import argparse
import math
import re

from profiler.rules.energy import Price

_PRICE = re.compile(r"(?P<number>\d+(?:[.,]\d+)?)\s*(?P<currency>\D{0,12})")


def add_price(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--price", type=_price, metavar="PRICE",
                        help='of one kWh, with its currency if wanted ("0.30 EUR"): says what the energy of '
                             "the GPUs cost")


def _price(text: str) -> Price:
    found = _PRICE.fullmatch(text.strip())
    if found is None or not text.isprintable() or not math.isfinite(float(found["number"].replace(",", "."))):
        raise argparse.ArgumentTypeError(f'{text!r} is not a price of one kWh, such as "0.30 EUR"')
    return Price(float(found["number"].replace(",", ".")), found["currency"].strip())
