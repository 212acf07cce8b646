"""One selection for all screens, with back and forward."""

from __future__ import annotations

from app.selection import MOST, NOWHERE, Place, Selection

ONE, TWO, THREE = Place((0, 5)), Place((5, 9), 1, "data"), Place(name="sync_bound")


def seen(selection: Selection) -> list[Place]:
    found: list[Place] = []
    selection.changed.connect(found.append)
    return found


def test_back_and_forward() -> None:
    selection = Selection()
    told = seen(selection)
    assert selection.place == NOWHERE and not selection.can_go_back and not selection.can_go_forward
    for place in (ONE, TWO, TWO):
        selection.choose(place)
    selection.back()
    assert selection.place == ONE and selection.can_go_forward
    selection.forward()
    selection.forward()
    selection.back()
    selection.choose(THREE)  # what was ahead is gone
    assert told == [ONE, TWO, ONE, TWO, ONE, THREE] and not selection.can_go_forward


def test_another_run_has_no_way_back() -> None:
    selection = Selection()
    selection.choose(ONE)
    told = seen(selection)
    selection.clear()
    selection.back()
    selection.clear()
    assert told == [NOWHERE] and not selection.can_go_back


def test_it_does_not_grow_for_ever() -> None:
    selection = Selection()
    for i in range(3 * MOST):
        selection.choose(Place((i, i + 1)))
    for _ in range(3 * MOST):
        selection.back()
    assert selection.place == Place((2 * MOST, 2 * MOST + 1))
