"""What HTA (`traceinsight` on PyPI) is asked for in the comparison. It needs nothing of ours.

    python hta_analysis.py TRACE

Prints one JSON object: the seconds of each analysis.
"""

import json
import sys
import time
from importlib.metadata import version


def main(path: str) -> None:
    seconds = {}
    begin = time.perf_counter()

    def done(name: str) -> None:
        nonlocal begin
        now = time.perf_counter()
        seconds[name], begin = now - begin, now

    from hta.trace_analysis import TraceAnalysis

    done("import")
    analysis = TraceAnalysis(trace_files={0: path})
    done("construction")
    analysis.get_temporal_breakdown(visualize=False)
    done("temporal breakdown")
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    done("idle-time breakdown")
    analysis.get_gpu_kernel_breakdown(visualize=False)
    done("kernel breakdown")
    analysis.get_comm_comp_overlap(visualize=False)
    done("overlap")
    analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
    done("launch statistics")
    analysis.get_queue_length_summary(ranks=[0])
    done("queue length")
    analysis.get_memory_bw_summary(ranks=[0])
    done("memory bandwidth")
    print(json.dumps({"version": version("traceinsight"), "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1])
