"""Several profiler windows as one trace."""

import numpy as np
import pytest

from profiler.analysis.trace.joined import Joined
from profiler.trace.merge import disjoint, extent, merged
from profiler.trace.model import NONE
from tests.rules.trace.loops import US, later, loop
from tests.traces import EPOCH_US, Timeline

SECOND = 1_000_000_000


def window(at: int, thread: int = 1) -> Timeline:
    line = Timeline().op("aten::relu", 0, 20 * US, thread, external=7, dims=[[at]])
    line.call("cudaLaunchKernel", 2 * US, 4 * US, 5, thread, external=7)
    line.kernel(f"kernel_{at}", 10 * US, 15 * US, 5, external=7)
    line.kernel("ncclDevKernel_AllReduce", 15 * US, 16 * US, 6,
                **{"Collective name": "allreduce", "dtype": "Float"})
    return later(line, at)


def test_every_event_keeps_its_time_and_finds_its_own():
    parts = [window(0).trace(), window(SECOND, thread=2).trace()]
    whole = merged(parts)
    assert whole.base_ns == EPOCH_US * 1000 and whole.cuts == (SECOND,)
    assert whole.host.start.tolist() == [0, 2 * US, SECOND, SECOND + 2 * US]
    assert [t.tid for t in whole.threads] == [1, 2] and whole.host.thread.tolist() == [0, 0, 1, 1]
    names = [whole.names[code] for code in whole.device.name]
    assert names == ["kernel_0", "ncclDevKernel_AllReduce", f"kernel_{SECOND}", "ncclDevKernel_AllReduce"]
    assert Joined(whole).launch.tolist() == [1, NONE, 3, NONE]
    assert len(set(whole.host.external.tolist())) == 2
    assert [whole.names[code] if code >= 0 else "" for code in whole.host.dims] == [
        "[[0]]", "", f"[[{SECOND}]]", ""]
    assert whole.collectives.device.tolist() == [1, 3] and whole.collectives.host.tolist() == [NONE, NONE]
    assert whole.losses.events == sum(part.losses.events for part in parts)


def test_the_order_of_files_does_not_matter():
    one, two = window(0).trace(), window(SECOND).trace()
    a, b = merged([one, two]), merged([two, one])
    for table in ("host", "device", "collectives"):
        for column in getattr(a, table).__dataclass_fields__:
            assert np.array_equal(getattr(getattr(a, table), column), getattr(getattr(b, table), column))
    assert merged([one]) is one


def test_windows_that_overlap_come_one_after_the_other():
    one, two = loop().trace(), loop().trace()
    assert not disjoint([one, two]) and disjoint([one, later(loop(), SECOND).trace()])
    whole = merged([one, two])
    assert whole.cuts[0] > extent(one)[1] and (np.diff(whole.host.start) >= 0).all()


@pytest.mark.parametrize("missing", ["device", "host"])
def test_a_window_without_device_or_host(missing):
    half = window(SECOND)
    half.events = [e for e in half.events if (e["cat"] == "kernel") is (missing == "host")]
    whole = merged([window(0).trace(), half.trace()])
    assert len(whole.host) == (2 if missing == "host" else 4)
    assert len(whole.device) == (2 if missing == "device" else 4)
