"""The four ways to store the same workload: what is mounted, and how it is undone."""

import os
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.loop import loop_device, mount_loop
from bench.paths import BIN, VENV_BIN
from bench.ssd import Ssd
from bench.streamctl import status
from bench.system import (
    BenchError,
    as_root,
    output_of,
    start,
    unmount,
    wait_until,
)

MODES = ("ext4", "off", "learned", "hints")


@dataclass(frozen=True)
class Folders:
    """A run's own folders: the image may lie in memory, the rest does not."""

    images: Path  # the emulated SSD's
    work: Path  # META, trace, logs
    shared: Path  # mount points and all else that the workload's user must reach


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
        """Words programmed, journal and bodies included, ÷ words of the home blocks touched."""
        return self.programmed / self.of_blocks if self.of_blocks else 0.0


@dataclass
class Control:
    """A mounted filesystem to run the workload on."""

    mode: str
    ssd: Ssd
    mount: Path
    meta_class: str = "none"
    trace: Path | None = None
    stream_run: Path | None = None
    servers: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    def check_alive(self) -> None:
        """Raise BenchError if a server or the daemon has ended: the figures would be another's."""
        for process, log in self.servers:
            if process.poll() is not None:
                message = f"{log.stem} ended by itself (exit {process.returncode}); see {log}"
                raise BenchError(message)

    def meta_words(self) -> MetaWords | None:
        """Return what META has programmed so far; None where there is none."""
        if self.mode == "ext4":
            return None
        meta = status(self.mount)["meta"]
        return MetaWords(meta["words_programmed"], meta["block_words"])


def mounted(stack: ExitStack, mode: str, ssd: Ssd, folders: Folders, user: str | None) -> Control:
    """Make the filesystem on a fresh device and mount it until the stack unwinds."""
    mount = folders.shared / "mount"
    mount.mkdir()
    if mode == "ext4":
        control = _mount_ext4(stack, ssd, mount, folders)
    else:
        control = _mount_streamfs(stack, mode, ssd, mount, folders)
    # The mount belongs to whoever runs the demo; folders in it go to the workload's user.
    if user is not None:
        mount.chmod(0o755)
    return control


def _mount_ext4(stack: ExitStack, ssd: Ssd, mount: Path, folders: Folders) -> Control:
    """Put ext4 on the SSD's loop device; discard is on."""
    served = folders.shared / "served"
    served.mkdir()
    log = folders.work / "ssd-sim.log"
    loop, server = loop_device(stack, ssd, served, log)
    # Nothing set aside (blocks for root, clusters for conversions, many inodes): how full the
    # device is, is the ballast's business.
    mount_loop(stack, ["mkfs.ext4", "-q", "-m", "0", "-i", "65536"], loop, mount)
    reserved = f"/sys/fs/ext4/{Path(loop).name}/reserved_clusters"
    subprocess.run(as_root(["tee", reserved]), input=b"0", check=True, capture_output=True)
    return Control("ext4", ssd, mount, servers=[(server, log)])


def _mount_streamfs(
    stack: ExitStack, mode: str, ssd: Ssd, mount: Path, folders: Folders
) -> Control:
    """Put META beside the logs, the data on the SSD; the daemon runs unless streams are off."""
    data, meta = f"emu:{ssd.path}", folders.work / "META"
    trace = folders.work / "trace" if mode == "off" else None
    output_of([BIN / "mkfs.streamfs", "--meta", meta, data])
    # Early copies cost NAND bytes, and when they happen depends on the machine's pace.
    options = [f"meta={meta}", f"placement={mode}", "idle_work=off"]
    options += [] if trace is None else [f"trace={trace}"]
    options += ["allow_other"] if os.geteuid() == 0 else []
    log = folders.work / "streamfs.log"
    server = start(stack, [BIN / "streamfs", data, mount, "-f", "-o", ",".join(options)], log, 60)
    stack.callback(unmount, ["fusermount3", "-u"], mount)
    wait_until(lambda: os.path.ismount(mount), "streamfs", server, log)
    servers = [(server, log)]
    if mode != "off":
        daemon_log = folders.work / "classifierd.log"
        daemon = start(stack, [VENV_BIN / "classifierd", "run", mount], daemon_log, 0)
        servers.append((daemon, daemon_log))
    meta_class = str(status(mount)["meta_class"])
    control = Control(mode, ssd, mount, meta_class, trace, servers=servers)
    control.stream_run = _stream_run(folders) if mode == "hints" else None
    return control


def _stream_run(folders: Folders) -> Path:
    """Copy stream-run and its library to where the workload's user can read them."""
    target = folders.shared / "bin"
    target.mkdir()
    for path in (BIN / "stream-run", *(BIN.parent / "lib").glob("libstream*.so*")):
        shutil.copy(path, target)
    return target / "stream-run"
