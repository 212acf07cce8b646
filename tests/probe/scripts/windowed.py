"""N steps; at one of them the script's own profiler may start, or many small operations run."""

import json
import os
import resource
import sys
import time
from pathlib import Path

import torch
from common import Net, Slow
from torch import nn

settings = json.loads(sys.argv[1])
steps, own, small, limit, ask = (settings.get(k, 0) for k in ("steps", "own", "small", "limit", "ask"))
model = Net(0.001, 0.001)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mine = None
if limit:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
for i, (x, y) in enumerate(torch.utils.data.DataLoader(Slow(2 * steps), batch_size=2), 1):
    if own and i == own:
        mine = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        mine.start()
    if ask and i == ask:
        Path(os.environ["STEPSCOPE_SPOOL"], "trace_now").write_text("2")
        time.sleep(0.3)
    with torch.profiler.record_function("labelled"):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    if i == 6:
        t = torch.zeros(1)
        for _ in range(small):
            t += 1
    optimizer.step()
if mine is not None:
    mine.stop()
print(json.dumps({"own": len(mine.key_averages()) if mine else 0}))
