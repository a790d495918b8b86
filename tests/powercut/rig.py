"""A streamfs on disks whose power can be cut: set up, used, cut, and looked at again.

Everything happens in a mount namespace of its own, where the machine's boot id is a file: after a
cut the filesystem has to see that the machine went down. The daemon is killed first, then all disks
are cut: until then nothing that it wrote had to reach them.
"""

import contextlib
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.integration.pairs import BIN, run, until
from tests.powercut.promises import Promises

MIB = 1 << 20
DATA_BYTES = 64 * MIB
META_BYTES = 8 * MIB
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MOUNT_SECONDS = 30.0
NOTES_SECONDS = 10.0


class Variant(NamedTuple):
    """The peculiarities of a filesystem."""

    name: str
    mixes: tuple[str, ...] = ("data", "names")
    mirror: bool = False
    full: bool = False
    fail_one_in: int = 0
    sector: int = 512


VARIANTS = (
    Variant("plain"),
    Variant("4 KiB sectors", sector=4096),
    Variant("95 % full", full=True),
    Variant("META kept twice", mirror=True),
    Variant("hard links and renames", mixes=("names", "names")),
    Variant("writes that fail", fail_one_in=150),
)


def boot() -> None:
    """Let the machine have started anew."""
    BOOT_ID.write_text(f"{uuid.uuid4()}\n")


@contextlib.contextmanager
def own_boot_id(folder: Path) -> Iterator[None]:
    """Put a file in the place of the machine's boot id; needs a mount namespace of one's own."""
    file = folder / "boot_id"
    file.write_text("00000000-0000-0000-0000-000000000000\n")
    run("mount", "--bind", file, BOOT_ID)
    try:
        yield
    finally:
        run("umount", BOOT_ID)


class Disk:
    """An image, and the power_cut_disk that shows it."""

    def __init__(self, image: Path, size: int) -> None:
        self.image = image
        self.point = image.with_suffix(".disk")
        self.point.mkdir()
        with image.open("wb") as file:
            file.truncate(size)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def file(self) -> Path:
        """Where its content is now: on the disk, or in the image when there is no power."""
        return self.point / "disk" if self.process else self.image

    def power_on(self, *faults: str) -> None:
        """Serve the image."""
        words = [str(BIN / "power_cut_disk"), str(self.image), str(self.point), *faults]
        self.process = subprocess.Popen(words)
        until(lambda: (self.point / "control").exists(), MOUNT_SECONDS, "the disk")

    def power_off(self, seed: int) -> None:
        """Keep a part of what is not flushed, and stop."""
        (self.point / "control").write_text(f"cut {seed}")
        self.end()

    def end(self) -> None:
        """Leave neither mount nor process."""
        if self.process is None:
            return
        run("umount", "-l", self.point, check=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


class Machine:
    """A filesystem and all that was ever promised of it."""

    def __init__(self, folder: Path, variant: Variant, seed: int, lie: str = "") -> None:
        self.folder, self.variant, self.lie = folder, variant, lie
        self.dice = random.Random(seed)
        self.point = folder / "mnt"
        self.point.mkdir()
        self.data = Disk(folder / "data", DATA_BYTES)
        self.metas = [Disk(folder / f"meta{i}", META_BYTES) for i in range(1 + variant.mirror)]
        self.daemon: subprocess.Popen[bytes] | None = None
        self.writers: list[subprocess.Popen[bytes]] = []
        self.notes: dict[str, Path] = {}
        self.boots = 0
        mirror = ["--mirror", str(self.metas[1].image)] if variant.mirror else []
        meta = ["-f", "--meta", str(self.metas[0].image), *mirror]
        run(BIN / "mkfs.streamfs", "--mean-file-size", "16K", *meta, self.data.image)

    def disks(self) -> list[Disk]:
        """All of them."""
        return [self.data, *self.metas]

    def mount(self) -> None:
        """Mount what the disks hold, or their images."""
        options = f"meta={self.metas[0].file}"
        if self.variant.mirror:
            options += f",mirror={self.metas[1].file}"
        words = [str(BIN / "streamfs"), str(self.data.file), str(self.point), "-f", "-o", options]
        log = (self.folder / "log").open("ab")
        with log:
            self.daemon = daemon = subprocess.Popen(words, stdout=log, stderr=log)
        until(
            lambda: self.point.is_mount() or daemon.poll() is not None, MOUNT_SECONDS, "the mount"
        )
        if daemon.poll() is not None:
            self.daemon = None
            said = (self.folder / "log").read_text()[-2000:]
            complaint = f"it does not mount:\n{said}"
            raise AssertionError(complaint)

    def unmount(self) -> None:
        """In order."""
        assert self.daemon is not None
        run("umount", self.point)
        code = self.daemon.wait(60)
        self.daemon = None
        assert code == 0, (self.folder / "log").read_text()[-2000:]

    def kill(self) -> None:
        """End the daemon, then whoever wrote."""
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
            self.daemon = None
        run("umount", "-l", self.point, check=False)
        for writer in self.writers:
            writer.kill()
            writer.wait()
        self.writers = []

    def end(self) -> None:
        """Whatever happened, leave nothing behind."""
        self.kill()
        for disk in self.disks():
            disk.end()

    def fill(self) -> None:
        """Write one file that leaves a twentieth of DATA, or less."""
        self.mount()
        space = os.statvfs(self.point)
        size = int(space.f_blocks * 0.955 - (space.f_blocks - space.f_bavail)) * space.f_frsize
        with (self.point / "filler").open("wb") as file:
            for at in range(0, size, MIB):
                file.write(at.to_bytes(8, "little") * (MIB // 8))
            os.fsync(file.fileno())
        self.unmount()

    def start_writers(self) -> list[Path]:
        """Start a writer for each mix, in a folder of its own that is durable."""
        fresh = []
        for number, mix in enumerate(self.variant.mixes):
            name = f"b{self.boots}w{number}"
            (self.point / name).mkdir()
            notes = self.folder / f"{name}.notes"
            self.notes[name] = notes
            fresh.append(notes)
            words = [sys.executable, "-m", "tests.powercut.workload", str(self.point / name)]
            with notes.open("wb") as out:
                words += [str(self.dice.randrange(1 << 30)), mix]
                self.writers.append(subprocess.Popen(words, stdout=out))
        return fresh

    def run_and_cut(self) -> None:
        """Let writers write for a while, and cut the power."""
        self.boots += 1
        boot()
        for disk in self.disks():
            faults = ["--sector", str(self.variant.sector), "--seed", str(self.boots)]
            if self.lie == "all" or (self.lie == "data" and disk is self.data):
                faults.append("--lie")
            if disk is self.data and self.variant.fail_one_in:
                faults += ["--fail", str(self.variant.fail_one_in)]
            disk.power_on(*faults)
        self.mount()
        notes = self.start_writers()
        enough = self.dice.choice((300, 2000, 8000)) + self.dice.randrange(3000)
        deadline = time.monotonic() + NOTES_SECONDS
        while sum(each.stat().st_size for each in notes) < enough:
            if time.monotonic() > deadline or all(w.poll() is not None for w in self.writers):
                break
            time.sleep(0.005)
        self.kill()
        for disk in self.disks():
            disk.power_off(self.dice.randrange(1 << 30))

    def wrong_filler(self) -> list[str]:
        """Compare the filler with what was written."""
        if not self.variant.full:
            return []
        with (self.point / "filler").open("rb") as file:
            at = 0
            while piece := file.read(MIB):
                if piece != at.to_bytes(8, "little") * (MIB // 8):
                    return [f"the filler is wrong at {at}"]
                at += MIB
        return []

    def look(self) -> tuple[int, list[str]]:
        """Start anew on what survived: how many promises there were, and what is wrong."""
        boot()
        self.mount()
        kept, wrong = 0, self.wrong_filler()
        for name, notes in self.notes.items():
            promises = Promises(notes.read_text())
            kept += promises.kept
            if (self.point / name).is_dir():
                wrong += promises.faults(self.point / name)
            elif promises.kept:
                wrong.append(f"{name} is gone")
        self.unmount()
        meta = ["--meta", str(self.metas[0].image)]
        meta += ["--mirror", str(self.metas[1].image)] if self.variant.mirror else []
        checked = run(BIN / "fsck.streamfs", "-n", "-f", *meta, self.data.image, check=False)
        if checked.returncode != 0:
            wrong.append(f"fsck: {checked.returncode}\n{checked.stdout}{checked.stderr}")
        return kept, wrong
