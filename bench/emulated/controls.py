"""The ways to store the same workload: what is mounted, and how it is undone."""

import os
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from bench.emulated.folders import Folders
from bench.loop import loop_device, mount_made
from bench.mounts import DECLARED, MEMORY
from bench.paths import BIN, VENV_BIN
from bench.ssd import Ssd
from bench.streamctl import status, vstreams
from bench.system import (
    BenchError,
    as_root,
    finish,
    output_of,
    start,
    unmount,
    wait_until,
)

# Blocks for root and many inodes are not made: how full the device is, is the ballast's business.
MAKE = {"ext4": ["mkfs.ext4", "-q", "-m", "0", "-i", "65536"], "xfs": ["mkfs.xfs", "-q"]}
# A full ext4 that has nothing set aside (below) tries for ever to write what it promised room for:
# unmounting it does not end. After so long its device ends, and without one it gives up.
STUCK_SECONDS = 180.0


META = ("synced", *DECLARED)  # a file on the disk, or in memory


@dataclass(frozen=True)
class Way:
    """A filesystem, and who tells it how long data will live."""

    filesystem: str = "streamfs"  # or one of MAKE
    placement: str = "off"
    daemon: bool = False
    preload: bool = False
    meta: str = "synced"  # or another of META

    @property
    def recorded(self) -> bool:
        """Whether its trace is: what every placement could have had to work with."""
        return self.filesystem == "streamfs" and self.placement == "off"


@dataclass(frozen=True)
class MetaWords:
    """Words on META: programmed, and in the 4 KiB home blocks that the changes touched."""

    programmed: int
    of_blocks: int

    def since(self, before: "MetaWords") -> "MetaWords":
        """Return what was added after ``before``."""
        return MetaWords(self.programmed - before.programmed, self.of_blocks - before.of_blocks)

    @property
    def ratio(self) -> float:
        """Words programmed for metadata ÷ words of the home blocks; no checksums of data."""
        return self.programmed / self.of_blocks if self.of_blocks else 0.0


@dataclass
class Control:
    """A mounted filesystem to run the workload on."""

    way: Way
    ssd: Ssd
    mount: Path
    meta_class: str = "none"
    trace: Path | None = None
    stream_run: Path | None = None
    servers: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    @property
    def settle(self) -> list[str | Path]:
        """The command after which all that was deleted is trimmed; empty where that goes by itself.

        streamfs's trims give way to programs, and what waits for them is live to the device.
        """
        return [] if self.way.filesystem in MAKE else [BIN / "streamctl", "trim", self.mount]

    def check_alive(self) -> None:
        """Raise BenchError if a server or the daemon has ended: the figures would be another's."""
        for process, log in self.servers:
            if process.poll() is not None:
                message = f"{log.stem} ended by itself (exit {process.returncode}); see {log}"
                raise BenchError(message)

    def meta_words(self) -> MetaWords | None:
        """Return what META has programmed so far; None where there is none."""
        if self.way.filesystem in MAKE:
            return None
        meta = status(self.mount)["meta"]
        return MetaWords(meta["metadata_words"], meta["block_words"])

    def model_kind(self) -> str:
        """Return the kind of the placement model that serves; empty where none does."""
        return "" if self.way.filesystem in MAKE else str(status(self.mount)["model"]["kind"])

    def vstreams(self) -> list[dict[str, Any]]:
        """Return the vStreams that streamfs has; none where there are none."""
        return [] if self.way.filesystem in MAKE else vstreams(self.mount)


def mounted(stack: ExitStack, way: Way, ssd: Ssd, folders: Folders, user: str | None) -> Control:
    """Make the filesystem on a fresh device and mount it until the stack unwinds."""
    mount = folders.shared / "mount"
    mount.mkdir()
    if way.filesystem in MAKE:
        control = _mount_kernels(stack, way, ssd, mount, folders)
    else:
        control = _mount_streamfs(stack, way, ssd, mount, folders)
    # The mount belongs to whoever runs the bench; folders in it go to the workload's user.
    if user is not None:
        mount.chmod(0o755)
    return control


def _mount_kernels(stack: ExitStack, way: Way, ssd: Ssd, mount: Path, folders: Folders) -> Control:
    """Put one of the kernel's filesystems on the SSD's loop device; discard is on."""
    served = folders.shared / "served"
    served.mkdir()
    log = folders.work / "ssd-sim.log"
    loop, server = loop_device(stack, ssd, served, log)
    output_of(as_root([*MAKE[way.filesystem], loop]))
    if way.filesystem == "xfs":
        _write_log_through(loop)
    stuck = Timer(STUCK_SECONDS, finish, (server, 0))
    stack.callback(stuck.cancel)
    mount_made(stack, loop, mount)
    stack.callback(stuck.start)  # right before it is unmounted
    _set_nothing_aside(way.filesystem, loop, mount)
    return Control(way, ssd, mount, servers=[(server, log)])


def _write_log_through(loop: str) -> None:
    """Write XFS's log once, as it is: that of an XFS in use has been written all over.

    Its 64 MiB would else be neither live nor to be had by anyone, and so be spare.
    """
    fields = ("logstart", "logblocks", "agblocks", "agblklog")
    asked = [word for name in fields for word in ("-c", f"print {name}")]
    said = output_of(as_root(["xfs_db", "-r", "-c", "sb 0", *asked, loop]))
    value = {words[0]: int(words[2]) for words in map(str.split, said.splitlines())}
    group, in_group = divmod(value["logstart"], 1 << value["agblklog"])
    first = group * value["agblocks"] + in_group
    where = [f"skip={first}", f"seek={first}", f"count={value['logblocks']}", "bs=4k"]
    how = ["conv=notrunc", "iflag=direct", "oflag=direct", "status=none"]
    output_of(as_root(["dd", f"if={loop}", f"of={loop}", *where, *how]))


def _set_nothing_aside(filesystem: str, loop: str, mount: Path) -> None:
    """Free what is kept for conversions of extents, so that ballast can have it."""
    if filesystem == "xfs":
        output_of(as_root(["xfs_io", "-x", "-c", "resblks 1", mount]))
        return
    reserved = f"/sys/fs/ext4/{Path(loop).name}/reserved_clusters"
    subprocess.run(as_root(["tee", reserved]), input=b"0", check=True, capture_output=True)


def _mount_streamfs(stack: ExitStack, way: Way, ssd: Ssd, mount: Path, folders: Folders) -> Control:
    """Put META beside the logs or in memory, the data on the SSD; start the daemon if wanted."""
    data, meta, declared = f"emu:{ssd.path}", folders.work / "META", []
    if way.meta in DECLARED:
        memory = stack.enter_context(TemporaryDirectory(dir=MEMORY, prefix="streamfs-bench-"))
        meta, declared = Path(memory) / "META", [DECLARED[way.meta]]
    trace = folders.work / "trace" if way.recorded else None
    output_of([BIN / "mkfs.streamfs", *declared, "--meta", meta, data])
    # Early copies cost NAND bytes, and when they happen depends on the machine's pace.
    options = [f"meta={meta}", f"placement={way.placement}", "idle_work=off"]
    options += [] if trace is None else [f"trace={trace}"]
    options += ["real_time"] if ssd.paced else []
    options += ["allow_other"] if os.geteuid() == 0 else []
    log = folders.work / "streamfs.log"
    server = start(stack, [BIN / "streamfs", data, mount, "-f", "-o", ",".join(options)], log, 60)
    stack.callback(unmount, ["fusermount3", "-u"], mount)
    wait_until(lambda: os.path.ismount(mount), "streamfs", server, log)
    servers = [(server, log)]
    if way.daemon:
        daemon_log = folders.work / "classifierd.log"
        daemon = start(stack, [VENV_BIN / "classifierd", "run", mount], daemon_log, 0)
        servers.append((daemon, daemon_log))
    meta_class = str(status(mount)["meta_class"])
    control = Control(way, ssd, mount, meta_class, trace, servers=servers)
    control.stream_run = _stream_run(folders) if way.preload else None
    return control


def _stream_run(folders: Folders) -> Path:
    """Copy stream-run and its library to where the workload's user can read them."""
    target = folders.shared / "bin"
    target.mkdir()
    for path in (BIN / "stream-run", *(BIN.parent / "lib").glob("libstream*.so*")):
        shutil.copy(path, target)
    return target / "stream-run"
