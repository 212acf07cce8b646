"""Scripts that train with torch, recorded."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiler.model import Event
from tests.record.running import opened, script
from tests.waiting import until

LONG = 600.0  # s: importing torch alone has taken more than thirty on a busy machine

COMMON = """
    import os, pathlib, signal, sys, time
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    def wait_for(name):
        while not pathlib.Path(name).exists():
            time.sleep(0.02)

    class Data(Dataset):
        def __init__(self, n, act=None, at=20):
            self.n, self.act, self.at = n, act, at
        def __len__(self):
            return self.n
        def __getitem__(self, i):
            if i == self.at and self.act is not None:
                self.act()
            time.sleep(0.002)
            return torch.randn(4)

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader, between=lambda step: None):
        for step, x in enumerate(loader):
            model(torch.as_tensor(x)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            between(step)
    """


def torch_script(folder: Path, text: str) -> str:
    return str(script(folder, textwrap.dedent(COMMON) + textwrap.dedent(text)))


def events_of(folder: Path, *kinds: str) -> list[Event]:
    if not (folder / "run.stepscope").exists():
        return []
    with opened(folder) as run:
        return [event for event in run.events() if event.kind in kinds]


def wait(process: subprocess.Popen[bytes], condition: Callable[[], Any]) -> Any:
    """The first true value of `condition()` while the recording runs."""
    def look() -> Any:
        value = condition()
        assert value or process.poll() is None, "the recording has ended"
        return value

    return until(look, LONG)
