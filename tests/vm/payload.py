"""The disk that brings streamfs and its tests into the guest."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.vm.machine import ROOT

BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
PROGRAMS = ("streamfs", "mkfs.streamfs", "fsck.streamfs", "streamctl", "ssd-sim", "mount.streamfs")
# The guest's own are newer, and everything in it is linked with them.
NOT_SHIPPED = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so.*")
LIBRARY = re.compile(r"(\S+) => (/\S+)")
FREE_BYTES = 64 << 20
MKFS = "/usr/sbin/mkfs.ext4"  # not in the path of ordinary users


def libraries(program: Path) -> dict[str, Path]:
    """The libraries that a program is linked with, by the name it asks for."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "not found" not in said, said
    found = {name: Path(path) for name, path in LIBRARY.findall(said)}
    return {name: path for name, path in found.items() if not NOT_SHIPPED.fullmatch(name)}


def gather(folder: Path) -> None:
    """Put what the guest is to have into a folder."""
    for name in ("bin", "lib", "tests"):
        (folder / name).mkdir(parents=True)
    for name in PROGRAMS:
        subprocess.run(["strip", "-o", folder / "bin" / name, BIN / name], check=True)
        for wanted, path in libraries(BIN / name).items():
            shutil.copy(path, folder / "lib" / wanted)
    for name in ("start", "agent.py", "phone.py"):
        shutil.copy(ROOT / "tests/vm/inside" / name, folder)
    (folder / "start").chmod(0o755)
    shutil.copy(ROOT / "systemd/65-streamfs.rules", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    shutil.copytree(ROOT / "tests/integration", folder / "tests/integration")


def make_image(content: Path, image: Path) -> Path:
    """Make the image of a disk with this content, and remove the folder."""
    used = sum(p.lstat().st_size for p in content.rglob("*"))
    with image.open("wb") as file:
        file.truncate(used * 11 // 10 + FREE_BYTES)
    words = [MKFS, "-q", "-O", "^has_journal", "-d", str(content), str(image)]
    subprocess.run(words, check=True)
    shutil.rmtree(content)
    return image


def make_payload(folder: Path) -> Path:
    """The disk's image."""
    gather(folder / "payload")
    return make_image(folder / "payload", folder / "payload.img")
