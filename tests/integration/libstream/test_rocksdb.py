"""RocksDB's WAL and levels on a mount: by name and thread, by its own hints, by what it merges."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.integration.libstream.harness import HELPERS, STREAM_RUN, Result, compile_c, run
from tests.integration.pairs import BIN, Mount, Pair
from tests.integration.pairs import run as checked

FILL = (
    *("db_bench", "--benchmarks=fillrandom,waitforcompaction", "--num=30000", "--value_size=400"),
    *("--write_buffer_size=1000000", "--target_file_size_base=1000000"),
    *("--max_bytes_for_level_base=2000000", "--max_bytes_for_level_multiplier=4"),
    *("--compression_type=none", "--max_background_jobs=4"),
)


def written(mount: Mount) -> dict[str, tuple[str, int]]:
    """Source and bytes of each named vStream that RocksDB's files were written to."""
    told: dict[str, Any] = json.loads(
        checked(BIN / "streamctl", "streams", mount.point, "--json").stdout
    )
    return {
        row["name"]: (row["source"], row["written_bytes"])
        for row in told["streams"]
        if row["name"].startswith(("rocksdb-", "rwh-")) and row["written_bytes"] > 0
    }


def fill(mount: Mount, *before: str, env: dict[str, str] | None = None) -> Result:
    done = run(*before, *FILL, f"--db={mount.point}/db", cwd=mount.point, env=env)
    assert done.status == 0, done.err
    return done


def levels_in_its_log(folder: Path) -> dict[int, tuple[int, int]]:
    """Level and bytes of each table that was made, by number: what is no compaction is a flush.

    Compactions within level 0, which a stall of writes brings about, are left out: what they make
    looks like level 1, and is no flush.
    """
    lines = (folder / "LOG").read_text().splitlines()
    events = [json.loads(line.split("EVENT_LOG_v1", 1)[1]) for line in lines if "EVENT_LOG" in line]
    begun = {e["job"] for e in events if e["event"] == "compaction_started"}
    ended = {e["job"]: e["output_level"] for e in events if e["event"] == "compaction_finished"}
    return {
        e["file_number"]: (ended.get(e["job"], 0), e["file_size"])
        for e in events
        if e["event"] == "table_file_creation"
        and (ended.get(e["job"], 0) > 0 or e["job"] not in begun)
    }


def labels_in(explained: str) -> dict[int, str]:
    """The label that each table was made with, by number."""
    found = re.findall(r"/(\d{6})\.sst: (\S+), by .*: honoured", explained)
    return {int(number): label for number, label in found}


@pytest.mark.skipif(shutil.which("db_bench") is None, reason="db_bench is not installed")
def test_wal_flushes_and_compactions_are_told_apart_by_name_and_thread(pair: Pair) -> None:
    """FUSE keeps nothing of RocksDB's hints. The filesystem's own rules see names."""
    mount = pair.mount("direct_io")
    fill(mount)
    found = written(mount)
    assert set(found) == {"rocksdb-wal", "rocksdb-l0", "rocksdb-sst"}
    assert {source for source, _ in found.values()} == {"rule"}


@pytest.mark.skipif(shutil.which("db_bench") is None, reason="db_bench is not installed")
def test_its_own_hints_win_under_stream_run(pair: Pair) -> None:
    """As its source has them: WAL short, level 0 and 1 medium, 2 long, below extreme."""
    mount = pair.mount("direct_io")
    fill(mount, str(STREAM_RUN), "--profile", "rocksdb", "--")
    found = written(mount)
    assert {"rwh-short", "rwh-medium", "rwh-long"} <= set(found)
    assert all(source == "hint" for name, (source, _) in found.items() if name.startswith("rwh-"))


@pytest.mark.skipif(shutil.which("db_bench") is None, reason="db_bench is not installed")
def test_without_hints_levels_are_told_by_what_a_thread_merges(pair: Pair, tmp_path: Path) -> None:
    """The truth is in RocksDB's own log: the level that each compaction wrote to."""
    swallow = compile_c(tmp_path / "swallow.so", HELPERS / "swallow_hints.c", "-shared", "-fPIC")
    mount = pair.mount()
    run_it = (str(STREAM_RUN), "--profile", "rocksdb", "--explain", "--")
    done = fill(mount, *run_it, env={"LD_PRELOAD": str(swallow)})
    truth, labels = levels_in_its_log(mount / "db"), labels_in(done.err)
    assert len({level for level, _ in truth.values()}) >= 3
    below = {number: row for number, row in truth.items() if row[0] > 0}
    right = sum(
        size for number, (level, size) in below.items() if labels[number] == f"rocksdb-l{level}"
    )
    share = right / sum(size for _, size in below.values())
    assert share > 0.9, f"{share:.0%} of the bytes in {len(below)} files"
    assert all(labels[number] == "rocksdb-l0" for number in truth.keys() - below.keys())
