"""Write amplification of RocksDB databases that share erase units larger than their tables.

Three databases, overwritten by db_bench, and cold files share an emulated SSD with erase
units of 16 MiB and copies of all streams in one unit. Counting begins once three times as much is
written as the SSD holds.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from bench.applications.rows import WAYS
from bench.emulated.controls import Way, mounted
from bench.emulated.folders import fresh_folders
from bench.paths import ROOT
from bench.programs.files import Ballast
from bench.programs.place import Place
from bench.programs.plan import MIB, QUICK, RocksPlan
from bench.programs.rocksdb import RocksInOrder
from bench.ssd import Counters, Ssd
from bench.table import Row, main, row

DATABASES = 3
UNIT_MIB = 16
DEVICE = ("--op", 0.07, "--streams", 8, "--gc", "shared", "--pages-per-block", UNIT_MIB * 256)
SIZE_MIB = 2048
TABLE_MIB = 1
# Shares of the SSD: the databases' values, and cold files. Compactions need the rest.
TREE, COLD = 0.5, (0.12, 0.22)
# Multiples of the SSD's size written before counting and while counting.
FULL_SIZES, QUICK_SIZES = (3.0, 2.0), (0.2, 0.2)
VALUE_BYTES = 1000
SHOWN = ("ext4", "off", "learned", "hints")


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    if quick:
        return list(rows(COLD[0], QUICK_SIZES))
    return [each for cold in COLD for each in rows(cold, FULL_SIZES)]


def rows(cold: float, sizes: tuple[float, float]) -> Iterator[Row]:
    """Yield the WAF of each way, and the gain of hints."""
    name = f"{UNIT_MIB // TABLE_MIB} tables a unit, {cold:.0%} cold"
    wafs = {}
    for label in SHOWN:
        counted = run(WAYS[label], cold, sizes)
        wafs[label] = counted.waf
        yield row(f"{name}: {label}", counted.waf, f"WAF, spare {counted.effective_spare:.3f}")
    more = 100 * (wafs["off"] / wafs["hints"] - 1)
    yield row(f"{name}: lifetime, hints", more, "% more than off; source 54")


def run(way: Way, cold: float, sizes: tuple[float, float]) -> Counters:
    """Run the databases on a fresh SSD; everything is undone at the end."""
    with fresh_folders(ROOT / "build" / "rocksdb", QUICK, keep=False) as folders, ExitStack() as up:
        ssd = Ssd(folders.images / "ssd", "--size", f"{SIZE_MIB}M", *DEVICE)
        control = mounted(up, way, ssd, folders, None)
        place = Place(control.mount, folders.shared, control.stream_run, None, folders.work / "log")
        Ballast(place, 0).add(int(cold * SIZE_MIB) * MIB)
        databases = make_databases(place)
        together(databases, 0)
        number = 1
        for capacities in sizes:
            ssd.reset()
            while ssd.counters().written_bytes < capacities * SIZE_MIB * MIB:
                together(databases, number)
                number += 1
        control.check_alive()
        return ssd.counters()


def make_databases(place: Place) -> list[RocksInOrder]:
    """Plan the databases; a round overwrites a twentieth of each."""
    keys = int(TREE * SIZE_MIB * MIB / DATABASES / VALUE_BYTES)
    plan = RocksPlan(keys, keys // 20, VALUE_BYTES, TABLE_MIB, mib_a_second=0)
    return [RocksInOrder(place, plan, 1000 * n, f"database-{n}") for n in range(DATABASES)]


def together(databases: list[RocksInOrder], number: int) -> None:
    """Run one round of each database at the same time; round 0 makes them."""
    with ThreadPoolExecutor(len(databases)) as pool:
        work = [
            pool.submit(each.round, number) if number else pool.submit(each.prepare)
            for each in databases
        ]
        for each in work:
            each.result()


if __name__ == "__main__":
    sys.exit(main("rocksdb", __doc__.splitlines()[0], measure))
