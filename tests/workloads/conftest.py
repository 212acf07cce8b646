"""Made data of all tests of workloads lies in one folder, made once."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "workloads"))
