"""RocksDB under its own db_bench."""

from typing import ClassVar

from bench.programs.place import Place
from bench.programs.plan import RocksPlan


class RocksDb:
    """db_bench overwriting random keys: a log, flushes and compactions."""

    name = "rocksdb"
    folder = "rocksdb"
    extra: ClassVar[dict[str, int]] = {}  # options of db_bench, in each of its runs

    def __init__(self, place: Place, plan: RocksPlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed

    def prepare(self) -> None:
        """Write every key once, then overwrite as many: the database has its lasting size.

        fillrandom would leave out a third of them, and the rounds add those one by one.
        """
        work = "filluniquerandom,overwrite"
        self._run(work, self.plan.keys, self.seed, existing=False, mib_a_second=0)

    def round(self, number: int) -> None:
        """Overwrite random keys; compactions that are due go on in the next round."""
        seed, rate = self.seed + number, self.plan.mib_a_second
        self._run("overwrite", self.plan.writes, seed, existing=True, mib_a_second=rate)

    def close(self) -> None:
        """Leave the database as it is."""

    def _run(
        self,
        benchmarks: str,
        writes: int,
        seed: int,
        *,
        existing: bool,
        mib_a_second: int,
        **more: float,
    ) -> None:
        buffer = self.plan.write_buffer_mib << 20
        options = {
            "benchmarks": benchmarks,
            "db": self.place.folder(self.folder),
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
            **self.extra,
            **more,
        }
        self.place.run("rocksdb", ["db_bench", *(f"--{k}={v}" for k, v in options.items())])


class RocksInOrder(RocksDb):
    """RocksDb in a folder of its own, loaded in key order so that the load needs no compaction.

    Pending compactions stall writes before the database outgrows its space.
    """

    extra: ClassVar[dict[str, int]] = {
        "soft_pending_compaction_bytes_limit": 32 << 20,
        "hard_pending_compaction_bytes_limit": 64 << 20,
    }

    def __init__(self, place: Place, plan: RocksPlan, seed: int, folder: str) -> None:
        super().__init__(place, plan, seed)
        self.folder = folder

    def prepare(self) -> None:
        """Write every key once, in order."""
        self._run("fillseq", self.plan.keys, self.seed, existing=False, mib_a_second=0)


class RocksFill(RocksDb):
    """Fills a database with random keys, anew in each round: the one before is deleted."""

    name = "rocksdb-fillrandom"

    def prepare(self) -> None:
        """Fill it once."""
        self.round(0)

    def round(self, number: int) -> None:
        """Delete all, fill again."""
        plan = self.plan
        seed, rate = self.seed + number, plan.mib_a_second
        self._run("fillrandom", plan.keys, seed, existing=False, mib_a_second=rate)


class RocksReadWhileWriting(RocksDb):
    """A thread overwrites random keys, another reads as many; writes are counted, not timed."""

    name = "rocksdb-readwhilewriting"

    def round(self, number: int) -> None:
        """Read and write."""
        plan = self.plan
        options = {"threads": 1, "reads": plan.writes, "finish_after_writes": 1}
        seed, rate = self.seed + number, plan.mib_a_second
        work = "readwhilewriting"
        self._run(work, plan.writes, seed, existing=True, mib_a_second=rate, **options)


class RocksYcsbA(RocksDb):
    """YCSB's workload A as db_bench's mixgraph can say it: half reads, half updates, few keys hot.

    Popularity is a power law, the continuous kin of YCSB's Zipf: of 100,000 keys the hottest gets
    10 % of the accesses (YCSB: 8 %), the hottest tenth 63 % (YCSB: 81 %).
    """

    name = "rocksdb-ycsb-a"
    _POWER = 0.2
    _COMPACTED = 12  # bytes that flushes and compactions may write for one put, at the plan's pace

    def round(self, number: int) -> None:
        """Read and update; there are twice as many operations as updates."""
        plan = self.plan
        options = {
            "reads": 2 * plan.writes,
            "mix_get_ratio": 0.5,
            "mix_put_ratio": 0.5,
            "mix_seek_ratio": 0,
            "key_dist_a": plan.keys**-self._POWER,
            "key_dist_b": self._POWER,
            "value_theta": plan.value_bytes,
            "value_sigma": 0,
            # mixgraph keeps to no rate. On ext4, space that compactions free is free only a journal
            # commit later, so at their full pace they would fill the device.
            "rate_limiter_bytes_per_sec": plan.mib_a_second * self._COMPACTED << 20,
            "level0_slowdown_writes_trigger": 6,
            "level0_stop_writes_trigger": 10,
        }
        seed, rate = self.seed + number, plan.mib_a_second
        self._run("mixgraph", plan.writes, seed, existing=True, mib_a_second=rate, **options)
