"""A workstation: systemd, an FDP SSD, and DRAM that `memmap=` sets aside as persistent memory.

Its system's disk outlives power cuts, as the SSD does; the DRAM does not.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.vm.machine import (
    COMMAND_LINE,
    GUEST,
    ROOT,
    SSD_BYTES,
    Machine,
    disk_words,
    kernel_words,
    sparse,
    ssd_words,
)
from tests.vm.payload import BIN, libraries, make_image

WORKSTATION = ROOT / "build/vm-workstation"
DATA = "passthrough"  # the serial number of the SSD
MEMMAP = "memmap=256M!1G"
PACKAGES = (
    "classifierd", "numpy", "numpy.libs", "scipy", "scipy.libs", "sklearn", "scikit_learn.libs",
    "joblib", "cloudpickle", "threadpoolctl.py", "prometheus_client", "narwhals",
)  # fmt: skip
CLASSIFIERD = '#!/bin/sh\nPYTHONPATH=/payload/python exec python3 -m classifierd "$@"\n'


def is_elf(path: Path) -> bool:
    """Whether it is a program or a library."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(folder: Path) -> list[Path]:
    """The programs and libraries in a folder."""
    return [path for path in folder.rglob("*") if is_elf(path)]


def gather_python(folder: Path) -> None:
    """Put classifierd and the packages that it needs into a folder."""
    site = next((ROOT / "build/venv/lib").glob("python3*/site-packages"))
    for name in PACKAGES:
        path = site / name
        if path.is_dir():
            # With its bytecode: without it, imports take minutes on an emulated processor.
            shutil.copytree(path, folder / name, ignore=shutil.ignore_patterns("tests"))
        elif path.exists():
            shutil.copy(path, folder / name)
    (metadata,) = site.glob("classifierd-*.dist-info")
    shutil.copytree(metadata, folder / metadata.name)


def make_workstation_payload(folder: Path) -> Path:
    """The disk that brings streamfs as its packages install it, and the agent; its image."""
    payload = folder / "payload"
    for name in ("lib", "python", "root"):
        (payload / name).mkdir(parents=True)
    subprocess.run(
        ["cmake", "--install", str(BIN.parent), "--prefix", "/usr", "--strip"],
        env={**os.environ, "DESTDIR": str(payload / "root")}, check=True, capture_output=True,
    )  # fmt: skip
    gather_python(payload / "python")
    (payload / "root/usr/bin/classifierd").write_text(CLASSIFIERD)
    (payload / "root/usr/bin/classifierd").chmod(0o755)
    for program in [*elf_files(payload / "root"), *elf_files(payload / "python/classifierd")]:
        for wanted, path in libraries(program).items():
            shutil.copy(path, payload / "lib" / wanted)
    for name in ("install", "agent.py"):
        shutil.copy(ROOT / "tests/vm/inside" / name, payload)
    (payload / "install").chmod(0o755)
    return make_image(payload, folder / "payload.img")


class Workstation(Machine):
    """The machine; its media are in a folder."""

    def __init__(self, folder: Path, payload: Path) -> None:
        super().__init__(folder, payload)
        self.memmap = ""  # the word on the kernel's command line
        self._root = folder / "root.img"
        words = ["cp", "--sparse=always", str(WORKSTATION / "root.img"), str(self._root)]
        subprocess.run(words, check=True)

    def _words(self, agent: int) -> list[str]:
        line = COMMAND_LINE.replace("init=/init ", "")
        words = ["qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=512"]
        words += ["-cpu", "max", "-smp", "2", "-m", "1536M", "-nodefaults", "-machine", "q35"]
        words += ["-display", "none", "-no-reboot", *kernel_words(GUEST)]
        words += ["-append", f"{line} {self.memmap}", "-serial", f"file:{self.folder / 'console'}"]
        words += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={agent}"]
        words += ["-device", "virtserialport,chardev=agent,name=agent"]
        words += disk_words("root", self._root, "cache=writeback")
        words += disk_words("payload", self.payload, "readonly=on")
        words += ssd_words(DATA, sparse(self.folder / "ssd", SSD_BYTES))
        return words

    def find_controllers(self) -> None:
        """Wait for none: udev's links name the disks."""
