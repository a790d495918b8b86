"""A block filesystem on an emulated SSD: served as a file, with a loop device on it, mounted."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.paths import BIN
from bench.ssd import Ssd
from bench.system import BenchError, as_root, output_of, start, unmount, wait_until


def not_installed(programs: Sequence[str]) -> str | None:
    """Say which programs are not there; None if all are."""
    missing = [name for name in programs if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def why_not(programs: Sequence[str]) -> str | None:
    """Say why no loop device can be had, or what is not installed; None if all is there."""
    if reason := not_installed(programs):
        return reason
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    try:
        output_of(as_root(["losetup", "--find"]))
    except BenchError as error:
        return str(error)
    return None


def loop_device(
    stack: ExitStack, ssd: Ssd, folder: Path, log: Path
) -> tuple[str, subprocess.Popen[bytes]]:
    """Serve the SSD in ``folder`` and put a loop device on it; return that and the server."""
    pace = ["--real-time"] if ssd.paced else []
    server = start(stack, as_root([BIN / "ssd-sim", "serve", "-f", *pace, ssd.path, folder]), log)
    stack.callback(unmount, as_root(["umount"]), folder)
    wait_until(lambda: os.path.ismount(folder), "ssd-sim serve", server, log)
    image = folder / "ssd.img"
    return attach_loop(stack, image), server


def attach_loop(stack: ExitStack, image: Path) -> str:
    """Put a loop device on a file until the stack unwinds; return its name."""
    command = as_root(["losetup", "--find", "--show", "--direct-io=on", image])
    loop = output_of(command).strip()
    stack.callback(subprocess.run, as_root(["losetup", "--detach", loop]), check=False)
    return loop


def mount_loop(stack: ExitStack, mkfs: Sequence[str], loop: str, mount: Path) -> None:
    """Make a filesystem and mount it until the stack unwinds; discard is on, the root is ours."""
    output_of(as_root([*mkfs, loop]))
    mount_made(stack, loop, mount)


def mount_made(stack: ExitStack, loop: str, mount: Path) -> None:
    """Mount what was made already."""
    output_of(as_root(["mount", "-o", "discard", loop, mount]))
    stack.callback(unmount, as_root(["umount"]), mount)
    output_of(as_root(["chown", f"{os.geteuid()}:{os.getegid()}", mount]))
