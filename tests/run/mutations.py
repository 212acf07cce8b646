"""Ways to damage a run file. Each case is drawn from its number alone, so that it can be had again."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

from profiler.run.codec import HEADER
from tests.fuzzing import Data
from tests.run.beside import journal
from tests.run.healthy import Healthy
from tests.run.planned import loosened

PAGE = 4096
MARK = "<img src=x onerror=alert(1)>"  # must not be an element of any page
HOSTILE = (MARK, f"</title><script>alert(1)</script>{MARK}", "\x1b]0;owned\x07\x1b[2J", "a\r\nb\x00c", "=1+1",
           "../../../etc/passwd", "..", "/etc/passwd", "x" * 5000, "\u202egnp.exe", "", "%s{0}{{x}}",
           "'; DROP", "-rf", "file\nname", "\u2028")
BAD: tuple[Any, ...] = (
    None, "", "x", b"", b"\x00\xff", -1, 0, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -2**63, 1e300, -1e300,
    5e-324, float("inf"), "nan", "[]", "{}", "[" * 3000, '{"a":' * 50 + "1" + "}" * 50, "NaN",
    "1e999", "9" * 5000, *HOSTILE)
JSON: tuple[Any, ...] = (None, True, [], {}, [[]], {"": {}}, -1, 0, 2**53 + 1, 2**63, 10**400, 1e308,
                         -1e308, 0.1, "nan", [None] * 3, {"a": [None]}, *HOSTILE)
TABLES = ("meta", "device", "process", "track", "journal", "block", "event", "attachment", "output", "result")
EXTRA = (
    "CREATE TRIGGER t AFTER INSERT ON result BEGIN DELETE FROM block; END",
    "CREATE TRIGGER t AFTER UPDATE ON meta BEGIN INSERT INTO output SELECT NULL, 1, zeroblob(9); END",
    "DROP TABLE event; CREATE VIEW event AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS id, i AS t_ns, 'mark' AS kind, 'info' AS severity, 'x' AS text, NULL AS device, "
    "NULL AS process, '{}' AS data FROM n",
    "DROP TABLE meta; CREATE VIEW meta AS SELECT 'name' AS key, hex(zeroblob(1 << 28)) AS value",
    "DROP TABLE event; "
    "CREATE VIRTUAL TABLE event USING fts5(id, t_ns, kind, severity, text, device, process, data)",
    "CREATE VIRTUAL TABLE extra USING rtree(id, low, high)",
    "ALTER TABLE event ADD COLUMN more TEXT AS (hex(zeroblob(1 << 28)))",
    "CREATE INDEX extra ON event (hex(zeroblob(1 << 10)))", "CREATE TABLE extra (a)",
    "DROP INDEX block_order", "ANALYZE", "DROP TABLE result",
)


def _open(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))


def extra(path: Path, rng: random.Random) -> None:
    """Something in the schema that no run has."""
    with _open(path) as db:
        db.executescript(rng.choice(EXTRA))


def values(path: Path, rng: random.Random) -> None:
    """A value of the wrong kind or size in a column of one row, of some, or of all."""
    with loosened(path) as db:
        for _ in range(rng.choice((1, 1, 3))):
            table = rng.choice(TABLES)
            column = rng.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
            where = rng.choice(("", "WHERE abs(random()) % 10 = 0"))
            with contextlib.suppress(sqlite3.Error):
                db.execute(f"UPDATE {table} SET {column} = ? {where}", (rng.choice(BAD),))


def numbers(path: Path, rng: random.Random) -> None:
    """Numbers of rows that lie: counts, times, levels, owners."""
    table, column = rng.choice((
        ("block", "n"), ("block", "first"), ("block", "level"), ("block", "t0_ns"), ("block", "t1_ns"),
        ("block", "track"), ("track", "device"), ("track", "process"), ("attachment", "length"),
        ("event", "t_ns"), ("process", "rank"), ("device", "idx")))
    change = rng.choice(("{0} + 1", "-{0}", "{0} * 1000", "0", "1", "9223372036854775807", "1 << 62",
                         "{0} / 2"))
    with loosened(path) as db, contextlib.suppress(sqlite3.Error):
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = {change.format(column)}")


def texts(path: Path, rng: random.Random) -> None:
    """Texts that try to be something else, in every place for a name."""
    hostile = rng.choice(HOSTILE)
    with _open(path) as db:
        for table, column in (("device", "name"), ("process", "command"), ("event", "text"),
                              ("event", "kind"), ("attachment", "name"), ("attachment", "kind"),
                              ("track", "metric"), ("result", "kind")):
            if rng.random() < 0.4:
                db.execute(f"UPDATE {table} SET {column} = ?", (hostile,))
        if rng.random() < 0.5:
            db.execute("UPDATE output SET data = ?", (hostile.encode(),))
    objects(path, rng, (hostile,))


def objects(path: Path, rng: random.Random, bad: tuple[Any, ...] = JSON) -> None:
    """A value somewhere inside the JSON of some rows."""
    with _open(path) as db:
        for table, column, key in (("meta", "value", "key"), ("process", "properties", "id"),
                                   ("device", "properties", "id"), ("track", "properties", "id"),
                                   ("event", "data", "id"), ("result", "value", "id")):
            rows = db.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
            for name, text in rng.sample(rows, min(len(rows), rng.choice((0, 1, 2, 8)))):
                new = json.dumps(_changed(json.loads(text), rng, bad))
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (new, name))


def _changed(value: Any, rng: random.Random, bad: tuple[Any, ...]) -> Any:
    if rng.random() < 0.2 or not isinstance(value, (dict, list)) or not value:
        return rng.choice(bad)
    at = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    if isinstance(value, dict) and rng.random() < 0.1:
        return {**value, rng.choice(HOSTILE): value[at]}
    value[at] = _changed(value[at], rng, bad)
    return value


def _equal(n: int) -> bytes:
    """A block that says of any number of samples that they are equal."""
    return HEADER.pack(1, 0, 0, 1, 1_700_000_000_000_000, n) + HEADER.pack(0, 0, 0, 1, 5, 5)


def packed(path: Path, rng: random.Random) -> None:
    """Blocks that unpack and hold nonsense: other numbers, not-a-number, a wrong width, bombs."""
    with _open(path) as db:
        rows = db.execute("SELECT id, n, data FROM block").fetchall()
        for number, n, data in rng.sample(rows, min(len(rows), rng.choice((1, 3, len(rows))))):
            try:
                raw, n = bytearray(zlib.decompress(data)), min(int(n), 1 << 20)
            except (zlib.error, TypeError, ValueError):  # an earlier change has been there
                continue
            kind = rng.randrange(5)
            if kind == 0:
                for _ in range(rng.choice((1, 5, 50))):
                    raw[rng.randrange(len(raw))] = rng.randrange(256)
            elif kind == 1:  # every value not a number, or endless
                wild = struct.pack("<d", rng.choice((float("nan"), float("inf"), -float("inf"), 1e308)))
                column = HEADER.pack(2, 8, 0, 1, 0, 0) + b"".join(bytes([b]) * n for b in wild)
                raw = bytearray(HEADER.pack(0, 0, 0, 1, 0, rng.choice((0, 1 << 50)))) + column
            elif kind == 2:
                raw += bytes(rng.choice((1, 1 << 26)))
            elif kind == 3:  # a block of a million equal samples
                n = rng.choice((1 << 20, 1 << 16))
                raw = bytearray(_equal(1000))
            else:
                del raw[rng.randrange(len(raw)):]
            db.execute("UPDATE block SET data = ?, n = ? WHERE id = ?", (zlib.compress(raw), n, number))


def bomb(path: Path, rng: random.Random) -> None:
    """Millions of samples, of JSON items or of bytes in a small file."""
    kind = rng.randrange(4)
    with _open(path) as db:
        if kind == 0:
            level = rng.choice((0, 0, 1, 6))
            raw = zlib.compress(_equal(1000) * (2 if level else 1))
            most = rng.choice((2, 14, 64, 2000))
            tracks = [track for (track,) in db.execute("SELECT id FROM track")][: rng.choice((1, 100))]
            db.execute("DELETE FROM block")
            for k in range(most):
                db.execute("INSERT INTO block VALUES (NULL, ?, ?, ?, ?, 0, ?, ?)",
                           (tracks[k % len(tracks)], level, k // len(tracks) << 20, 1 << 20, 1 << 61, raw))
        elif kind == 1:
            text = rng.choice(("[" + "[]," * (1 << 22) + "0]", "[" + "0," * (1 << 23) + "0]",
                               '"' + "x" * (1 << 25) + '"'))
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (rng.choice(("more", "notes")), text))
        elif kind == 2:
            data = zlib.compress(bytes(1 << 28))
            db.execute("INSERT INTO attachment VALUES (NULL, 1, 'kineto', 'b', NULL, '{}', ?, ?, 'zlib', ?)",
                       (rng.choice((1 << 28, 1 << 20, 1 << 40)), len(data), data))
        else:
            db.execute("INSERT INTO output SELECT NULL, i, zeroblob(?) FROM (WITH RECURSIVE n(i) AS (SELECT "
                       "1 UNION ALL SELECT i + 1 FROM n LIMIT ?) SELECT i FROM n)",
                       rng.choice(((0, 200_000), (1 << 24, 3))))


def in_file(data: bytes, rng: random.Random) -> bytes:
    """Bytes and pages: cut, changed, swapped, and interior pages whose children are each other."""
    raw, kind = bytearray(data), rng.randrange(6)
    pages = len(raw) // PAGE
    if kind == 0:
        del raw[rng.randrange(len(raw)):]
    elif kind == 1:
        for _ in range(rng.choice((1, 10, 300))):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
    elif kind == 2:
        one, two = rng.randrange(pages) * PAGE, rng.randrange(pages) * PAGE
        raw[one:one + PAGE], raw[two:two + PAGE] = raw[two:two + PAGE], raw[one:one + PAGE]
    elif kind == 3:
        at = rng.randrange(pages) * PAGE
        raw[at:at + PAGE] = rng.choice((bytes(PAGE), b"\xff" * PAGE, rng.randbytes(PAGE)))
    elif kind == 4:
        raw[rng.randrange(100)] = rng.randrange(256)
    else:
        page, child = rng.randrange(1, pages), rng.randrange(1, pages + 1)
        raw[page * PAGE:page * PAGE + PAGE] = circle(child)
    return bytes(raw)


def circle(child: int) -> bytes:
    """An interior page of a table whose several hundred children are one page."""
    count = 300
    cells = [PAGE - 5 * (k + 1) for k in range(count)]
    body = bytearray(PAGE)
    body[:12] = struct.pack(">BHHHBI", 5, 0, count, cells[-1], 0, child)
    for k, at in enumerate(cells):
        body[12 + 2 * k:14 + 2 * k] = struct.pack(">H", at)
        body[at:at + 5] = struct.pack(">IB", child, min(k, 127))
    return bytes(body)


CHANGES = (extra, values, numbers, texts, objects, packed, bomb), (1, 3, 2, 2, 4, 3, 1)


def beside(name: str, data: bytes, rng: random.Random) -> dict[str, bytes]:
    """A journal, a -wal, an index that lie beside the file: whole, forged, damaged, of another."""
    pages = rng.choice((0, 1, len(data) // PAGE))
    named = rng.choice((b"", b"", b"/tmp/stepscope-none", b"a.stepscope", b"../../x", b"x" * 3000, b"\0\0"))
    log = journal(data.ljust(PAGE, b"\0"), named, pages)
    wal = struct.pack(">IIIIIIII", 0x377F0682, 3007000, PAGE, 0, 1, 2, 3, 4) + rng.randbytes(PAGE + 24)
    found = {name: data}
    for ending, whole in (("-journal", log), ("-wal", wal), ("-shm", rng.randbytes(1 << 15))):
        if rng.random() < 0.5:
            found[name + ending] = rng.choice((whole, whole[:rng.randrange(len(whole))], whole + whole, b"",
                                               rng.randbytes(99)))
    return found


def case(sources: tuple[Healthy, ...], number: int, seed: int = 0) -> tuple[str, str, Data]:
    """Case `number`: what was done to what, a file name, and the content of the file or files."""
    rng = random.Random(f"{seed}/{number}")
    source = rng.choice(sources)
    done, data = [source.name], source.data
    if rng.random() < 0.75:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.stepscope"
            path.write_bytes(data)
            for _ in range(rng.choice((1, 1, 2))):
                change = rng.choices(*CHANGES)[0]
                done.append(change.__name__)
                with contextlib.suppress(sqlite3.Error, ValueError, TypeError, RecursionError):
                    change(path, rng)
                if change is extra:  # whose views have no end
                    break
            data = path.read_bytes()
    if len(done) == 1 or rng.random() < 0.1:
        data = in_file(data, rng)
        done.append("in_file")
    if rng.random() < 0.1 and data:
        return " ".join([*done, "beside"]), "a.stepscope", beside("a.stepscope", data, rng)
    return " ".join(done), "a.stepscope", data
