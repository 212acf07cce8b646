"""Operators by call stack: from the stacks that they carry, or from the Python functions around them."""

from profiler.analysis.trace.code.operators import operators
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.code.stacks import coded
from profiler.analysis.trace.joined import Joined
from tests.traces import Timeline


def by_stack(line):
    found = operators(Owners(Joined(line.trace())), "name", "stack")
    return {o.key: (o.calls, o.host_total_ns) for o in found}


def test_stacks_that_operators_carry():
    line = Timeline()
    for k, stack in enumerate(("a.py(1): f;a.py(9): main", "a.py(2): g;a.py(9): main",
                               "a.py(1): f;a.py(9): main")):
        line.op("aten::mm", 100 * k, 100 * k + 10, stack=stack)
    assert by_stack(line) == {("aten::mm", "a.py(1): f;a.py(9): main"): (2, 20),
                              ("aten::mm", "a.py(2): g;a.py(9): main"): (1, 10)}


def test_stacks_of_python_functions_around():
    line = Timeline().python("a.py(9): main", 0, 1000)
    for k, name in enumerate(("f", "g", "f")):
        line.python(f"a.py({k % 2 + 1}): {name}", 100 * k, 100 * k + 50)
        line.op("aten::mm", 100 * k + 1, 100 * k + 11).op("aten::add", 100 * k + 2, 100 * k + 5)
    line.op("aten::mm", 900, 907).op("aten::mm", 2000, 2003)
    found = by_stack(line)
    assert found[("aten::mm", "a.py(1): f;a.py(9): main")] == (2, 20)
    assert found[("aten::mm", "a.py(2): g;a.py(9): main")] == (1, 10)
    assert found[("aten::mm", "a.py(9): main")] == (1, 7)
    assert found[("aten::mm", "")] == (1, 3)
    assert found[("aten::add", "a.py(1): f;a.py(9): main")] == (2, 6)


def test_stacks_that_look_alike_are_one():
    line = Timeline()
    for k in range(2):  # they differ only outside of the frames that are kept
        line.python(f"main.py({k}): main", 1000 * k, 1000 * k + 900)
        for depth in range(12):
            line.python(f"a.py({depth}): f", 1000 * k + depth + 1, 1000 * k + 800 - depth)
        line.op("aten::mm", 1000 * k + 100, 1000 * k + 110)
    texts, code = coded(Joined(line.trace()))
    assert len(texts) == len(set(texts)) and code.max() < len(texts)
    assert list(by_stack(line).values()) == [(2, 20)]


def test_objects_of_one_kind_are_one_frame():
    line = Timeline()
    for k in range(2):
        line.python(f"<built-in method to of Tensor object at 0x7ce279c59e{k}0>", 100 * k, 100 * k + 50)
        line.op("aten::to", 100 * k + 1, 100 * k + 11)
    assert by_stack(line) == {("aten::to", "<built-in method to of Tensor object>"): (2, 20)}
