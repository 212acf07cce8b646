"""The dependency graph of the steps, replayed with one cost changed. Definitions, section 4."""

from profiler.replay.predict import predict
from profiler.replay.result import Replay, Scenario

__all__ = ["Replay", "Scenario", "predict"]
