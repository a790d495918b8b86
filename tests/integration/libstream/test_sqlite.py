"""SQLite's nine temporary files on a mount: which vStream the filesystem wrote each to.

docs/design/placement.md has the table. The mount is without page cache (direct_io), so that what
SQLite writes to a file that it deletes a moment later is written to the device all the same, and
counted.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.integration.libstream.harness import LIB, SQL, STREAM_RUN, run
from tests.integration.pairs import BIN, Mount, Pair
from tests.integration.pairs import run as checked


class Kind(NamedTuple):
    """A kind of temporary file: what makes SQLite write it, and where it should go."""

    what: str
    sql: str
    by_name: str  # rules: the filesystem's own, and the preload library's
    by_flags: str  # libstream_sqlite


# Temporary b-trees and sorts have caches of 2 MiB of their own: what spills is larger.
FOUR = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<4) SELECT i FROM n)"
KINDS = [
    Kind("rollback journal", "UPDATE t SET b = b || 'x';", "journal", "journal"),
    Kind(
        "super-journal",
        "ATTACH 'other.db' AS o; BEGIN; INSERT INTO t VALUES (-1, 'x');"
        "CREATE TABLE o.t(a); COMMIT;",
        "super-journal",
        "super-journal",
    ),
    Kind("write-ahead log", "PRAGMA journal_mode=wal; UPDATE t SET b = b || 'y';", "wal", "wal"),
    Kind(
        "statement journal",
        "BEGIN; UPDATE t SET a = a + 100000 WHERE a > 0; COMMIT;",
        "temp",
        "subjournal",
    ),
    Kind("TEMP database", "CREATE TEMP TABLE u AS SELECT * FROM t;", "temp", "temp-db"),
    Kind(
        "materialised subquery",
        f"SELECT count(*) FROM (SELECT DISTINCT b || i FROM t, {FOUR});",
        "temp",
        "transient-db",
    ),
    Kind(
        "transient index",
        f"SELECT count(*) FROM t AS x, (SELECT b || i AS d FROM t, {FOUR} LIMIT 16000) AS y"
        " WHERE x.b || '3' = y.d;",
        "temp",
        "transient-db",
    ),
    Kind("transient database of VACUUM", "VACUUM;", "temp", "temp-db"),
    Kind(
        "sorter, none of the nine",
        f"SELECT b FROM t, {FOUR} ORDER BY b || i;",
        "temp",
        "temp-journal",
    ),
]
# Every statement that writes also journals.
BESIDE = {"journal", "wal", "shm"}


def streams(mount: Mount) -> dict[str, Any]:
    """The filesystem's row of each vStream that has a name."""
    text = checked(BIN / "streamctl", "streams", mount.point, "--json").stdout
    told = json.loads(text)
    rows = told["streams"] if isinstance(told, dict) else told
    return {row["name"]: row for row in rows if row["name"]}


def written(mount: Mount) -> dict[str, int]:
    """Bytes that the filesystem wrote to each vStream of SQLite's, by its name behind "sqlite-"."""
    return {
        name.removeprefix("sqlite-"): row["written_bytes"]
        for name, row in streams(mount).items()
        if name.startswith("sqlite-")
    }


FILL = """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<4000)
  INSERT INTO t SELECT i, hex(i*7919)||printf('%0200d', i) FROM n;"""
SHIM_WORDS = ("-cmd", f".load {LIB}/libstream_sqlite", "-cmd", ".open file:app.db?vfs=streamfs")


def sqlite(mount: Mount, sql: str, way: str) -> None:
    """Run SQL on app.db, temporary files in files, in the mount, with little cache."""
    settings = "PRAGMA temp_store=FILE; PRAGMA cache_size=10; PRAGMA temp.cache_size=10;"
    before = (STREAM_RUN, "--") if way == "preload" else ()
    how = (*SHIM_WORDS, ":memory:") if way == "shim" else ("file:app.db",)
    env = {"SQLITE_TMPDIR": str(mount.point)}
    done = run(*before, "sqlite3", "-bail", *how, settings + sql, env=env, cwd=mount.point)
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize("way", ["names", "preload", "shim"])
def test_each_temporary_file_goes_where_the_table_says(pair: Pair, way: str) -> None:
    mount = pair.mount("direct_io")
    sqlite(mount, FILL, way)
    for kind in KINDS:
        before = written(mount)
        sqlite(mount, kind.sql, way)
        grown = {name for name, count in written(mount).items() if count > before.get(name, 0)}
        wanted = {kind.by_flags if way == "shim" else kind.by_name}
        assert grown - (BESIDE - wanted) == wanted, kind.what
    known = streams(mount)
    assert "sqlite-shm" in known, "mapped, so that its writes are the kernel's to time"
    if way == "names":
        assert {row["source"] for name, row in known.items() if "sqlite-" in name} == {"rule"}
    if way != "shim":
        assert known["sqlite-temp"]["dead_bytes"] > 0
        assert known["sqlite-temp"]["lifetime_bytes"] > 0


def test_the_shim_changes_no_answer_and_works_without_streamfs(tmp_path: Path) -> None:
    sql = SQL.replace("{mode}", "wal")
    words = (*SHIM_WORDS, ":memory:", sql)
    with_shim = run("sqlite3", "-bail", *words, cwd=tmp_path)
    assert with_shim == run("sqlite3", "-bail", tmp_path / "plain.db", sql)
    assert (tmp_path / "app.db").read_bytes() == (tmp_path / "plain.db").read_bytes()
    again = ("-cmd", f".load {LIB}/libstream_sqlite") * 2
    vfs = run("sqlite3", *again, ":memory:", "-cmd", ".vfslist", "SELECT 1;").out
    assert vfs.count('vfs.zName      = "streamfs"') == 1
