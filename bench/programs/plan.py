"""How much each program does: fixed counts and seeds, so that every run asks for the same bytes."""

from dataclasses import dataclass
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class PostgresPlan:
    """pgbench's TPC-B: few pages that are rewritten at each checkpoint, and a busy log."""

    scale: int
    clients: int
    transactions: int  # by each client, each round
    max_wal_mib: int


@dataclass(frozen=True)
class SqlitePlan:
    """Rows a database, and commits a round in each journal mode."""

    rows: int
    commits: int
    rows_a_commit: int
    sorted_rows: int  # by the statement that needs temporary files


@dataclass(frozen=True)
class RocksPlan:
    """db_bench's overwrite."""

    keys: int
    writes: int  # a round
    value_bytes: int
    write_buffer_mib: int
    mib_a_second: int  # slow enough for compactions to keep up


@dataclass(frozen=True)
class MariaDbPlan:
    """sysbench's OLTP over tables larger than the buffer pool."""

    tables: int
    rows: int  # a table
    clients: int
    transactions: int  # a round
    buffer_pool_mib: int


@dataclass(frozen=True)
class EtcdPlan:
    """Puts; log and snapshots cycle sooner than by default, as there are fewer of them."""

    keys: int
    value_bytes: int
    clients: int
    puts: int  # a round
    snapshot_count: int  # puts from one snapshot to the next
    wals_max: int


@dataclass(frozen=True)
class FilesPlan:
    """Logs that rotate, media that stay, trees that come and go."""

    log_mib: int  # appended a round, over all services
    log_rotate_mib: int
    log_kept: int
    media_files: int  # in the library
    media_mib: int  # each
    media_new: int  # a round; as many of the oldest go
    trees_kept: int
    tree_files: int
    new_names: int = 0  # directories that are new in each round


@dataclass(frozen=True)
class Plan:
    """A size of the demo."""

    name: str
    live_bytes: int  # peak live data, with the cold ballast: 1 ÷ 1.07 of the physical pages
    pages_per_block: int
    warmup_rounds: int
    counted_rounds: int
    postgres: PostgresPlan
    sqlite: SqlitePlan
    rocksdb: RocksPlan
    files: FilesPlan
    mariadb: MariaDbPlan
    etcd: EtcdPlan


QUICK = Plan(
    name="quick",
    live_bytes=512 * MIB,
    pages_per_block=64,
    warmup_rounds=4,
    counted_rounds=6,
    postgres=PostgresPlan(scale=3, clients=16, transactions=375, max_wal_mib=48),
    sqlite=SqlitePlan(rows=20_000, commits=80, rows_a_commit=8, sorted_rows=4_000),
    rocksdb=RocksPlan(
        keys=16_000, writes=4_000, value_bytes=1000, write_buffer_mib=1, mib_a_second=2
    ),
    files=FilesPlan(
        log_mib=4,
        log_rotate_mib=1,
        log_kept=3,
        media_files=20,
        media_mib=2,
        media_new=1,
        trees_kept=3,
        tree_files=300,
    ),
    mariadb=MariaDbPlan(tables=2, rows=4_000, clients=2, transactions=50, buffer_pool_mib=8),
    etcd=EtcdPlan(keys=200, value_bytes=500, clients=2, puts=100, snapshot_count=100, wals_max=1),
)

FULL = Plan(
    name="full",
    live_bytes=1536 * MIB,
    pages_per_block=128,
    warmup_rounds=4,
    counted_rounds=9,
    postgres=PostgresPlan(scale=8, clients=16, transactions=1000, max_wal_mib=128),
    sqlite=SqlitePlan(rows=60_000, commits=300, rows_a_commit=8, sorted_rows=16_000),
    rocksdb=RocksPlan(
        keys=48_000, writes=12_000, value_bytes=1000, write_buffer_mib=2, mib_a_second=4
    ),
    files=FilesPlan(
        log_mib=12,
        log_rotate_mib=3,
        log_kept=3,
        media_files=16,
        media_mib=8,
        media_new=1,
        trees_kept=3,
        tree_files=1000,
    ),
    mariadb=MariaDbPlan(tables=4, rows=100_000, clients=8, transactions=4000, buffer_pool_mib=32),
    etcd=EtcdPlan(
        keys=4_000, value_bytes=8_000, clients=8, puts=4_000, snapshot_count=4_000, wals_max=2
    ),
)


_PARTS = {
    "postgres": PostgresPlan,
    "sqlite": SqlitePlan,
    "rocksdb": RocksPlan,
    "files": FilesPlan,
    "mariadb": MariaDbPlan,
    "etcd": EtcdPlan,
}


def to_plan(values: dict[str, Any]) -> Plan:
    """Return what ``dataclasses.asdict`` made these values of."""
    parts = {name: part(**values[name]) for name, part in _PARTS.items()}
    return Plan(**values | parts)
