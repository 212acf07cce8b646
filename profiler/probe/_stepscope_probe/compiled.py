"""What torch.compile has made: graphs, and the time it took, by torch's counters. Sent when they change."""

import sys


class Compiled:
    name = "compiled"

    def __init__(self):
        self._sent = None

    def records(self, now):
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is None:
            return
        graphs = dynamo.counters.get("stats", {}).get("unique_graphs", 0)
        spent = getattr(dynamo, "cumulative_time_spent_ns", {})
        ns = int(spent.get("entire_frame_compile", 0) + spent.get("entire_backward_compile", 0))
        if (graphs, ns) != self._sent:
            self._sent = graphs, ns
            yield '["compiled",%d,%d,%d]\n' % (now, graphs, ns)
