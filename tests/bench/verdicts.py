"""What a benchmark found, held against what must be."""

from __future__ import annotations

from collections.abc import Sequence


def tell(verdicts: Sequence[tuple[bool, str]]) -> bool:
    """Print a line for each. Whether all hold."""
    for holds, text in verdicts:
        print(f"{'holds' if holds else 'FAILS'}  {text}")
    return all(holds for holds, _ in verdicts)
