"""nvitop's collector for cadence.py: `PYTHON cadence_nvitop.py RATE SECONDS`, in a Python that has nvitop."""

from __future__ import annotations

import json
import resource
import sys
import time

from nvitop import Device, ResourceMetricCollector


class Timed(ResourceMetricCollector):
    """Notes when each look begins."""

    def __init__(self, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]
        super().__init__(*args, **kwargs)
        self.looks: list[int] = []

    def take_snapshots(self):  # type: ignore[no-untyped-def]
        self.looks.append(time.monotonic_ns())
        return super().take_snapshots()


def main() -> None:
    rate, seconds = float(sys.argv[1]), float(sys.argv[2])
    collector = Timed(Device.all(), root_pids=(), interval=1 / rate)
    with collector("bench"):
        time.sleep(1.0)
        collector.looks.clear()
        begin, cpu = time.monotonic(), time.process_time()
        while time.monotonic() - begin < seconds:
            time.sleep(1.0)
            collector.collect()  # the means of a second, as its loggers take them
        share = (time.process_time() - cpu) / (time.monotonic() - begin)
        looks = list(collector.looks)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"t_ns": looks, "cpu": share, "rss": rss}))


if __name__ == "__main__":
    main()
