"""The rows of a run file, and how one that cannot be stored is kept from ending the recording."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

PUT_META = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
BUMP = "UPDATE meta SET value = value + 1 WHERE key = 'revision'"
PUT_DEVICE = "INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, ?)"
PUT_PROCESS = "INSERT OR REPLACE INTO process VALUES (?, ?, ?, ?, ?, ?, ?)"
PUT_TRACK = "INSERT INTO track VALUES (?, ?, ?, ?, ?, ?)"
PUT_EVENT = "INSERT INTO event VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)"
PUT_ATTACHMENT = "INSERT INTO attachment VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
PUT_OUTPUT = "INSERT INTO output VALUES (NULL, ?, ?)"
DROP_OUTPUT = "DELETE FROM output WHERE id BETWEEN ? AND ?"
PUT_JOURNAL = "INSERT INTO journal VALUES (?, ?, ?, ?)"
PUT_BLOCK = "INSERT INTO block VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)"

# What a value of the wrong kind ends in; a full disk or a damaged file is none of these.
_REJECTED = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError,
             OverflowError)


def put(db: sqlite3.Connection, statement: str, row: tuple[Any, ...], now_ns: Callable[[], int]) -> None:
    """Store a row. One that SQLite rejects is left out, and an event of now says so."""
    try:
        try:
            db.execute(statement, row)
        except UnicodeEncodeError:  # bytes of a file name that are no text
            db.execute(statement, tuple(map(_storable, row)))
    except _REJECTED as error:
        text = f"a record was left out: {error}"
        db.execute(PUT_EVENT, (now_ns(), "record_rejected", "warning", text, None, None, "{}"))


def _storable(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
