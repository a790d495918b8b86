"""SQLite: commits with a rollback journal and with a WAL, and sorts that spill."""

import os
from collections.abc import Iterator

from bench.programs.place import Place
from bench.programs.plan import SqlitePlan


class Sqlite:
    """Two databases, one with a rollback journal and one with a WAL, and sorts that spill."""

    name = "sqlite"
    modes: tuple[str, ...] = ("delete", "wal")
    sorted_mode = "delete"  # of the database that is sorted

    def __init__(self, place: Place, plan: SqlitePlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed

    def prepare(self) -> None:
        """Fill the databases."""
        for mode in self.modes:
            self._run(mode, self._create(mode))

    def round(self, number: int) -> None:
        """Commit in both modes, then sort what does not fit the cache."""
        self._commit_all(number)
        self._run(self.sorted_mode, self._sort())

    def close(self) -> None:
        """Leave the databases as they are."""

    def _commit_all(self, number: int) -> None:
        for mode in self.modes:
            self._run(mode, self._commits(mode, number))

    def _create(self, mode: str) -> Iterator[str]:
        yield f"PRAGMA journal_mode={mode};"
        yield "CREATE TABLE t(k INTEGER PRIMARY KEY, n INTEGER, v BLOB); BEGIN;"
        yield "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL"
        yield f"SELECT i+1 FROM c LIMIT {self.plan.rows})"
        yield "INSERT INTO t SELECT i, 0, randomblob(300) FROM c;"
        yield "COMMIT; CREATE INDEX t_n ON t(n);"

    def _commits(self, mode: str, number: int) -> Iterator[str]:
        yield f"PRAGMA journal_mode={mode}; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=500;"
        key = self.seed + number * 7919
        for _ in range(self.plan.commits):
            yield "BEGIN;"
            for _ in range(self.plan.rows_a_commit):
                key = (key * 1_103_515_245 + 12_345) & 0x7FFFFFFF
                # Most changes hit a tenth of the rows, as they do in life.
                span = self.plan.rows if key % 5 == 0 else self.plan.rows // 10
                yield f"UPDATE t SET n=n+1, v=randomblob(300) WHERE k={1 + (key >> 8) % span};"
            yield "COMMIT;"

    def _sort(self) -> Iterator[str]:
        yield "PRAGMA temp_store=FILE; PRAGMA cache_size=100;"
        yield f"CREATE TEMP TABLE s AS SELECT * FROM t ORDER BY v LIMIT {self.plan.sorted_rows};"
        yield "CREATE INDEX temp.s_v ON s(v); SELECT count(*) FROM s;"

    def _run(self, mode: str, statements: Iterator[str]) -> None:
        script = self.place.scratch / f"sqlite-{os.getpid()}.sql"
        script.write_text("\n".join(statements))
        database = self.place.folder("sqlite") / f"{mode}.db"
        self.place.run("sqlite", ["sqlite3", "-bail", database, f".read {script}"])


class SqliteWal(Sqlite):
    """Commits into one database with a WAL, and nothing else."""

    name = "sqlite-wal"
    modes = ("wal",)

    def round(self, number: int) -> None:
        """Commit."""
        self._commit_all(number)


class SqliteRollback(Sqlite):
    """The database with a rollback journal alone, and what it sorts."""

    name = "sqlite-rollback"
    modes = ("delete",)


class SqliteWalAndSorts(Sqlite):
    """The database with a WAL alone, and what it sorts."""

    name = "sqlite-wal-and-sorts"
    modes = ("wal",)
    sorted_mode = "wal"
