"""The three database engines of the workload: PostgreSQL, SQLite, RocksDB."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.demo.place import Place, ProgramError
from bench.demo.plan import PostgresPlan, RocksPlan, SqlitePlan
from bench.system import finish


def postgres_bin() -> Path:
    """Return the folder of the newest PostgreSQL that Debian installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(found, key=lambda path: int(path.parts[4].split(".")[0]), default=None)
    if newest is None:
        message = "PostgreSQL is not installed; run scripts/setup"
        raise ProgramError(message)
    return newest.parent


POSTGRES_SETTINGS = """
listen_addresses = ''
shared_buffers = 48MB
fsync = on
synchronous_commit = on
full_page_writes = on
wal_level = minimal
max_wal_senders = 0
max_wal_size = {wal_mib}MB
min_wal_size = {wal_mib}MB
checkpoint_timeout = 30s
checkpoint_completion_target = 0.7
autovacuum_naptime = 5s
max_connections = 32
"""


class Cluster:
    """A PostgreSQL of its own in a place's mount, on a socket outside of it.

    Whoever starts it has to end it, by ``stop`` or ``abort``, also when starting failed.
    """

    def __init__(self, place: Place, max_wal_mib: int) -> None:
        self.place, self.max_wal_mib = place, max_wal_mib
        self.bin = postgres_bin()
        self.server: subprocess.Popen[bytes] | None = None
        self.sockets = place.scratch / "pg"

    def start(self, scale: int) -> None:
        """Make the cluster, start the server and load pgbench's tables."""
        self.sockets.mkdir()
        self.place.own(self.sockets)
        data = self.place.folder("postgres") / "data"
        options = ["--no-sync", "--wal-segsize=1", "--auth=trust", "--username=demo", "--no-locale"]
        self.place.run("postgresql", [self.bin / "initdb", *options, "-D", data])
        settings = POSTGRES_SETTINGS.format(wal_mib=self.max_wal_mib)
        with (data / "postgresql.conf").open("a") as file:
            file.write(settings + f"unix_socket_directories = '{self.sockets}'\n")
        self.server = self.place.start("postgresql", [self.bin / "postgres", "-D", data])
        self._wait_ready()
        self.pgbench("-i", "-q", "-s", str(scale))

    def pgbench(self, *arguments: str) -> None:
        """Run pgbench; what it says goes to the place's log."""
        self._run("pgbench", *arguments)

    def checkpoint(self) -> None:
        """Write all of its buffers now."""
        self._run("psql", "-q", "-c", "checkpoint")

    def stop(self) -> None:
        """Shut the server down; TimeoutExpired if that takes too long."""
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait(20)

    def abort(self) -> None:
        """Shut it down without a checkpoint; killed, it would leave its shared memory behind."""
        if self.server is not None:
            self.server.send_signal(signal.SIGQUIT)
            finish(self.server, 20)

    def _run(self, program: str, *arguments: str) -> None:
        where = ["-h", str(self.sockets), "-U", "demo"]
        self.place.run("postgresql", [self.bin / program, *where, *arguments, "postgres"])

    def _wait_ready(self) -> None:
        ready = [str(word) for word in (self.bin / "pg_isready", "-q", "-h", self.sockets)]
        for _ in range(600):
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.05)
        message = f"PostgreSQL did not start; see {self.place.log}"
        raise ProgramError(message)


class Postgres:
    """pgbench against a cluster of its own in the mount.

    Every commit waits for the log to be on the medium, which rewrites the log's last page; the
    log's segments are recycled, because a checkpoint comes whenever ``max_wal_mib`` is used up.
    """

    name = "postgres"

    def __init__(self, place: Place, plan: PostgresPlan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        self.cluster = Cluster(place, plan.max_wal_mib)

    def prepare(self) -> None:
        """Make the cluster, start the server and load the tables."""
        self.cluster.start(self.plan.scale)

    def round(self, number: int) -> None:
        """Run the round's transactions; pgbench empties its history table first."""
        clients = str(self.plan.clients)
        counts = ["-c", clients, "-j", "1", "-t", str(self.plan.transactions)]
        self.cluster.pgbench(
            "-b", "simple-update", "-M", "prepared", f"--random-seed={self.seed + number}", *counts
        )

    def close(self) -> None:
        """Shut the server down."""
        self.cluster.stop()

    def abort(self) -> None:
        """Shut it down at once."""
        self.cluster.abort()


class Sqlite:
    """Two databases, one with a rollback journal and one with a WAL, and sorts that spill."""

    name = "sqlite"
    modes: tuple[str, ...] = ("delete", "wal")

    def __init__(self, place: Place, plan: SqlitePlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed

    def prepare(self) -> None:
        """Fill the databases."""
        for mode in self.modes:
            self._run(mode, self._create(mode))

    def round(self, number: int) -> None:
        """Commit in both modes, then sort what does not fit the cache."""
        self._commit_all(number)
        self._run("delete", self._sort())

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


class RocksDb:
    """db_bench overwriting random keys: a log, flushes and compactions."""

    name = "rocksdb"

    def __init__(self, place: Place, plan: RocksPlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed

    def prepare(self) -> None:
        """Write every key, then overwrite as many: the database has its lasting size."""
        self._run("fillrandom,overwrite", self.plan.keys, self.seed, existing=False, mib_a_second=0)

    def round(self, number: int) -> None:
        """Overwrite random keys; compactions that are due go on in the next round."""
        seed, rate = self.seed + number, self.plan.mib_a_second
        self._run("overwrite", self.plan.writes, seed, existing=True, mib_a_second=rate)

    def close(self) -> None:
        """Leave the database as it is."""

    def _run(
        self, benchmarks: str, writes: int, seed: int, *, existing: bool, mib_a_second: int
    ) -> None:
        buffer = self.plan.write_buffer_mib << 20
        options = {
            "benchmarks": benchmarks,
            "db": self.place.folder("rocksdb"),
            "use_existing_db": int(existing),
            "num": self.plan.keys,
            "writes": writes,
            "seed": seed,
            "value_size": self.plan.value_bytes,
            "compression_type": "none",
            "write_buffer_size": buffer,
            "target_file_size_base": buffer,
            "max_bytes_for_level_base": 4 * buffer,
            "max_compaction_bytes": 8 * buffer,
            "level_compaction_dynamic_level_bytes": 1,
            "max_background_jobs": 2,
            "level0_file_num_compaction_trigger": 2,
            "benchmark_write_rate_limit": mib_a_second << 20,
            "stats_dump_period_sec": 0,
        }
        self.place.run("rocksdb", ["db_bench", *(f"--{k}={v}" for k, v in options.items())])
