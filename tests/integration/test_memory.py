"""The daemon's memory stays within its limit, and is told."""

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.pairs import Mount, Pair

MIB = 1 << 20
THREADS = 4
FILE_MIB = 256  # of each thread: what is written beyond that is written over
LIMIT_MIB = 256
BESIDE_MIB = 64  # outside the limit: program, stacks, requests under way
FILES = 30_000
FILE_BYTES_MAX = 250  # of a file that is only known; with all that is kept of it, over 500


@pytest.fixture
def pair(make_pair: Callable[..., Pair]) -> Pair:
    """DATA in a sparse file: an emulated SSD has memory of its own."""
    one = make_pair(size="64M")
    one.data = str(one.folder / "data")
    with Path(one.data).open("wb") as file:
        file.truncate(2 * THREADS * FILE_MIB * MIB)
    one.mkfs("--mean-file-size", "16K")
    return one


def anonymous(mount: Mount) -> int:
    """Bytes of the daemon's own memory: META's mapped pages belong to META's device or file."""
    rows = Path(f"/proc/{mount.process.pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("RssAnon"))


def write(path: Path, mebibytes: int, seed: int) -> None:
    """Write so much, at random places of all sizes, an fsync now and then."""
    chance = random.Random(seed)
    piece = chance.randbytes(MIB)
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    written = 0
    while written < mebibytes * MIB:
        size = chance.choice((4096, 5000, 65536, MIB, MIB, MIB))
        os.pwrite(fd, piece[:size], chance.randrange(FILE_MIB * MIB - size))
        written += size
        if chance.random() < 0.01:
            os.fsync(fd)
    os.fsync(fd)
    os.close(fd)


def sampled(mount: Mount, mebibytes: int) -> list[int]:
    """Memory after each eighth of a run of writes."""
    found = []
    with ThreadPoolExecutor(THREADS) as pool:
        for part in range(8):
            share = mebibytes // THREADS // 8
            jobs = [pool.submit(write, mount / f"f{n}", share, part) for n in range(THREADS)]
            for job in jobs:
                job.result()
            found.append(anonymous(mount))
    return found


@pytest.mark.parametrize("gibibytes", [1, pytest.param(8, marks=pytest.mark.long)])
def test_a_run_of_writes_stays_within_the_limit(pair: Pair, gibibytes: int) -> None:
    mount = pair.mount(f"cache_mib={LIMIT_MIB}")
    found = sampled(mount, gibibytes * 1024)
    told = mount.status()["memory"]
    print("MiB after each eighth:", [each // MIB for each in found])  # noqa: T201
    assert max(found) <= (LIMIT_MIB + BESIDE_MIB) * MIB
    assert max(found[4:]) - max(found[:4]) <= BESIDE_MIB * MIB // 4, "it grows"
    assert told["anonymous_bytes"] == pytest.approx(anonymous(mount), abs=8 * MIB)
    assert told["mapped_bytes"] > 0
    assert told["cache_bytes"] <= told["cache_bytes_max"] == LIMIT_MIB * MIB
    mount.unmount()
    pair.assert_sound()


def test_files_that_are_only_known_cost_little(pair: Pair) -> None:
    mount = pair.mount("cache_mib=8")

    def make(folder: str) -> int:
        (mount / folder).mkdir()
        for i in range(FILES):
            os.mknod(mount / folder / str(i))
        return anonymous(mount)

    first = make("a")
    rest = [make(folder) for folder in ("b", "c", "d")]  # the heap grows in steps of MiB
    assert rest[-1] - first < len(rest) * FILES * FILE_BYTES_MAX
    assert all((mount / "a" / str(i)).stat().st_size == 0 for i in range(0, FILES, 100))
