from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.fakes import nvml
from tests.record.gpu_recording import Record, watch


@pytest.fixture(scope="session")
def gpu_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def watched(gpu_library: Path, tmp_path: Path) -> Record:
    """Starts a recording: a context manager, whose arguments are lines of the plan."""
    return partial(watch, gpu_library, tmp_path)
