"""The kernel's filesystems on an emulated SSD without streams: bytes asked, bytes programmed.

Each is made on a fresh device, mounted with ``discard`` and filled with fio's files and ballast to
the wanted effective spare. Then come rounds, the first of which does not count: fio overwrites at
random and through the page cache, a tree is unpacked, unpacked over itself and deleted. In the end
the filesystem has to be clean. Counts and seeds are fixed, so the bytes asked are the same for
each.
"""

import io
import random
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.accounting import asked_by
from bench.loop import loop_device, mount_loop, why_not
from bench.ssd import Counters, Ssd
from bench.system import as_root, output_of
from bench.table import Row, row, unavailable

MIB = 1 << 20
MAKE = {"ext4": ["mkfs.ext4", "-q"], "xfs": ["mkfs.xfs", "-q"]}
CHECK = {"ext4": ["e2fsck", "-f", "-n"], "xfs": ["xfs_repair", "-n"]}
JOBS = ("random", "mixed")
SPARE = 0.2  # XFS keeps so much to itself that there is no room for less on devices this small
OP = 0.005
SEED = 20240229


@dataclass(frozen=True)
class Size:
    """How much of it."""

    device_mib: int
    file_mib: int  # of each of fio's two files
    random_mib: int  # overwritten at random in a round
    mixed_mib: int  # read and written in a round
    tree_files: int
    rounds: int  # counted; one more, to warm up, comes first


QUICK = Size(device_mib=1024, file_mib=320, random_mib=48, mixed_mib=256, tree_files=600, rounds=1)
FULL = Size(
    device_mib=2048, file_mib=640, random_mib=512, mixed_mib=1024, tree_files=2400, rounds=3
)


def filesystems(quick: bool) -> list[Row]:
    """Return the rows of every filesystem; BenchError if one does not end clean."""
    programs = ["fio", "tar", *(words[0] for words in (*MAKE.values(), *CHECK.values()))]
    if reason := why_not(programs):
        return [unavailable(f"{name} on a loop device", reason) for name in MAKE]
    size = QUICK if quick else FULL
    return [line for name in MAKE for line in measured(name, size)]


def measured(name: str, size: Size) -> Iterator[Row]:
    """Measure one filesystem."""
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamfs-bench-")))
        counters, asked = live_through(stack, name, size, work)
    spare = f"effective spare {counters.effective_spare:.1%}"
    yield row(f"{name}: WAF", counters.waf, spare)
    yield row(f"{name}: NAND bytes per application byte", counters.nand_bytes / asked, spare)
    yield row(f"{name}: bytes that fio and tar asked to write", asked / MIB, "MiB")


def live_through(stack: ExitStack, name: str, size: Size, work: Path) -> tuple[Counters, int]:
    """Make, use, unmount and check one; return what the device counted and the programs asked."""
    served, mount, archive = work / "served", work / "mount", work / "tree.tar"
    served.mkdir()
    mount.mkdir()
    write_tree(archive, size.tree_files)
    ssd = Ssd(work / "ssd", "--size", f"{size.device_mib}M", "--op", OP, "--streams", 1)
    loop, _ = loop_device(stack, ssd, served, work / "ssd-sim.log")
    with ExitStack() as mounted:
        mount_loop(mounted, MAKE[name], loop, mount)
        fill(mount, ssd, archive, size)
        work_round(mount, archive, size, 0)
        ssd.reset()
        asked = sum(work_round(mount, archive, size, 1 + n) for n in range(size.rounds))
    counters = ssd.counters()
    output_of(as_root([*CHECK[name], loop]))
    return counters, asked


def fill(mount: Path, ssd: Ssd, archive: Path, size: Size) -> None:
    """Write all that stays: fio's files, then ballast, less what the trees will take."""
    for job in JOBS:
        output_of([*fio(mount, job, size), "--rw=write", "--bs=1M", "--end_fsync=1"])
    counters = ssd.counters()
    trees = (size.rounds + 2) * archive.stat().st_size
    ballast = counters.physical_bytes / (1 + SPARE) - counters.live_bytes - trees
    with (mount / "ballast").open("wb") as file:
        for _ in range(int(ballast / MIB)):
            file.write(bytes(MIB))
    output_of(["sync", "-f", mount])


def work_round(mount: Path, archive: Path, size: Size, number: int) -> int:
    """Do a round, down to the device; return the bytes that fio and tar asked to write."""
    asked = sum(asked_by(command) for command in commands(mount, archive, size, number))
    output_of(["sync", "-f", mount])
    return asked


def commands(mount: Path, archive: Path, size: Size, number: int) -> Iterator[list[str]]:
    """Yield a round's commands; of them only fio and tar write."""
    seed = f"--randseed={SEED + number}"
    random_writes, mix = ([*fio(mount, job, size), seed] for job in JOBS)
    yield [*random_writes, f"--io_size={size.random_mib}M", "--rw=randwrite", "--direct=1"]
    mixed = ["--rw=randrw", "--bsrange=4k-64k", "--fsync=64"]
    yield [*mix, f"--io_size={size.mixed_mib}M", *mixed]
    new, kept = mount / "tree", mount / f"kept{number}"
    yield ["mkdir", str(new), str(kept)]
    for folder in (new, kept, new):
        yield ["tar", "-xf", str(archive), "-C", str(folder), "--overwrite"]
    yield ["rm", "-r", str(new)]


def fio(mount: Path, name: str, size: Size) -> list[str]:
    """Return a job on a file of its own."""
    options = {
        "name": name,
        "filename": mount / name,
        "size": f"{size.file_mib}M",
        "ioengine": "psync",
        "fallocate": "none",
    }
    return ["fio", "--output-format=json", *(f"--{key}={value}" for key, value in options.items())]


def write_tree(archive: Path, files: int) -> None:
    """Make an archive of small files, half of them below 8 KiB, the same in every run."""
    chance = random.Random(SEED)
    with tarfile.open(archive, "w") as tree:
        for number in range(files):
            entry = tarfile.TarInfo(f"{number % 20}/{number}")
            entry.size = int(1024 * 2 ** chance.uniform(0, 6))
            tree.addfile(entry, io.BytesIO(chance.randbytes(entry.size)))
