"""Which programs, how much of them, and in which ways it is all stored.

Each row has a device of its own size, so that what its programs rewrite is a good part of it: on a
device of cold data nothing need be copied, whatever the placement.
"""

from dataclasses import dataclass, replace

from bench.emulated.controls import Way
from bench.emulated.run import PROGRAMS
from bench.programs.plan import MIB, QUICK, Plan, PostgresPlan, RocksPlan, SqlitePlan

WAYS = {
    "ext4": Way("ext4"),
    "xfs": Way("xfs"),
    "off": Way(),
    "learned": Way(placement="learned", daemon=True),
    "hints": Way(placement="hints", preload=True),
    "both": Way(placement="auto", daemon=True, preload=True),
}
CONTROLS, SEPARATING = ("ext4", "xfs"), ("learned", "hints", "both")


@dataclass(frozen=True)
class AppRow:
    """A row: programs, and a plan that says how much they do."""

    name: str
    title: str
    programs: tuple[str, ...]
    plan: Plan
    rocksdb: bool = False  # is held beside what the multi-stream SSD's authors measured


# XFS takes no less than 300 MiB, 64 of them for its log.
_ALONE = replace(QUICK, live_bytes=384 * MIB, warmup_rounds=3, counted_rounds=5)
_SQLITE = replace(
    _ALONE,
    name="sqlite",
    sqlite=SqlitePlan(rows=300_000, commits=600, rows_a_commit=8, sorted_rows=8_000),
)
_ROCKS = replace(
    _ALONE,
    name="rocksdb",
    live_bytes=320 * MIB,
    rocksdb=RocksPlan(
        keys=100_000, writes=12_000, value_bytes=1000, write_buffer_mib=2, mib_a_second=2
    ),
)
_FILL = replace(_ROCKS, rocksdb=replace(_ROCKS.rocksdb, mib_a_second=8))  # all of it in each round
_POSTGRES = replace(
    _ALONE,
    name="postgres",
    postgres=PostgresPlan(scale=8, clients=16, transactions=400, max_wal_mib=48),
)


def _rocks(work: str) -> AppRow:
    name = f"rocksdb-{work}"
    program = "rocksdb" if work == "overwrite" else name
    plan = _FILL if work == "fillrandom" else _ROCKS
    return AppRow(name, f"RocksDB, {work}", (program,), plan, rocksdb=True)


ROWS = {
    row.name: row
    for row in (
        AppRow("sqlite-rollback", "SQLite, rollback journal", ("sqlite-rollback",), _SQLITE),
        AppRow("sqlite-wal", "SQLite, WAL", ("sqlite-wal-and-sorts",), _SQLITE),
        *(_rocks(work) for work in ("fillrandom", "overwrite", "readwhilewriting", "ycsb-a")),
        AppRow("postgresql", "PostgreSQL, pgbench", ("postgres",), _POSTGRES),
        AppRow("mixed", "all of them and file churn", PROGRAMS, QUICK),
    )
}
QUICK_ROWS = ("sqlite-wal", "rocksdb-overwrite", "mixed")
