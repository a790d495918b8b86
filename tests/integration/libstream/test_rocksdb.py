"""RocksDB's WAL and levels on a mount: by name and thread, and by its own hints."""

import json
import shutil
from typing import Any

import pytest
from tests.integration.libstream.harness import STREAM_RUN, run
from tests.integration.pairs import BIN, Mount, Pair
from tests.integration.pairs import run as checked

FILL = (
    *("db_bench", "--benchmarks=fillrandom", "--num=30000", "--value_size=400"),
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


def fill(mount: Mount, *before: str) -> None:
    done = run(*before, *FILL, f"--db={mount.point}/db", cwd=mount.point)
    assert done.status == 0, done.err


@pytest.mark.skipif(shutil.which("db_bench") is None, reason="db_bench is not installed")
def test_wal_flushes_and_compactions_are_told_apart_by_name_and_thread(pair: Pair) -> None:
    """What FUSE keeps of RocksDB's hints: nothing. The filesystem's own rules see names."""
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
