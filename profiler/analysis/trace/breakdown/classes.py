"""The classes of the partition, as codes. Definitions, section 3."""

from __future__ import annotations

COMPUTE, COMMUNICATION, TRANSFER, QUEUED, PEER, INPUT_WAIT, ALLOCATOR, TRANSFER_HOST, SYNC, HOST = range(10)
OTHER = 10  # the first of other:<name>; they go on by name
BASE = ("compute", "communication_exposed", "transfer_exposed", "queued", "queued:peer", "input_wait",
        "allocator", "transfer_host", "sync", "host")
UNKNOWN = -1  # of a host thread: nothing is known of what it does


def other(name: str) -> str:
    """The class of host work under a user's annotation."""
    return f"other:{name}"
