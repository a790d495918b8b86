"""Emulated SSD and META in a folder, and the mounts made of them.

STREAMFS_TEST_DATA and STREAMFS_TEST_META name devices to take in their place: what is on them is
lost. STREAMFS_TEST_OPTIONS are options of every mount besides a test's own, with commas.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
MOUNT_SECONDS = 20.0
DRAIN_SECONDS = 30.0


def run(*words: str | Path, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command with its output captured; a failure shows that output."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=more.pop("timeout", 300),
        check=False,
        **more,
    )
    assert not check or done.returncode == 0, (
        f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.002)


class Mount:
    """A running streamfs. Its own process only is ever signalled."""

    def __init__(
        self, command: list[str], point: Path, log: Path, before: Callable[[], None] | None = None
    ) -> None:
        self.point = point
        self.log = log
        began = time.monotonic()
        self._said_before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=before)
        until(self._settled, MOUNT_SECONDS, "the mount")
        self.mount_seconds = time.monotonic() - began
        if not self.point.is_mount():
            self.end()
            pytest.fail(f"streamfs did not mount:\n{log.read_text()}")

    def _settled(self) -> bool:
        """Whether it is over, or the log says that the mount answers."""
        with self.log.open("rb") as log:
            log.seek(self._said_before)
            answers = f" at {self.point}: META".encode() in log.read()
        return answers or self.process.poll() is not None

    def __truediv__(self, name: str) -> Path:
        """Path of something in the mount."""
        return self.point / name

    def status(self) -> dict[str, Any]:
        """The object that streamctl status --json prints."""
        answer: dict[str, Any] = json.loads(
            run(BIN / "streamctl", "status", self.point, "--json").stdout
        )
        return answer

    def streams(self) -> list[dict[str, Any]]:
        """The rows that streamctl streams --json lists."""
        rows: list[dict[str, Any]] = json.loads(
            run(BIN / "streamctl", "streams", self.point, "--json").stdout
        )["streams"]
        return rows

    def unmount(self) -> None:
        """Unmount in an orderly way; the program must exit 0."""
        run("umount", self.point)
        assert self.process.wait(DRAIN_SECONDS) == 0, self.log.read_text()

    def kill(self) -> None:
        """kill -9, and take the dead mount away."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DRAIN_SECONDS)
        self._take_away()

    def end(self) -> None:
        """Whatever happened, leave neither mount nor process."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(DRAIN_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._take_away()

    def _take_away(self) -> None:
        rows = Path("/proc/self/mounts").read_text().splitlines()
        if any(row.split()[1] == str(self.point) for row in rows):
            run("umount", "-l", self.point, check=False)


class Pair:
    """META and DATA in a directory, and the mounts made of them."""

    def __init__(self, folder: Path, size: str = "1G", meta: Path | None = None) -> None:
        self.folder = folder
        self.image = folder / "ssd"
        self.given = os.environ.get("STREAMFS_TEST_DATA")
        self.data = self.given or f"emu:{self.image}"
        self.meta = meta or Path(os.environ.get("STREAMFS_TEST_META", folder / "META"))
        self.point = folder / "mnt"
        self.point.mkdir()
        self.mounts: list[Mount] = []
        if not self.given:
            words = ["--size", size, "--streams", "8", "--op", "0.1"]
            run(BIN / "ssd-sim", "create", self.image, *words)

    def mkfs(self, *options: str) -> str:
        """Make the filesystem; returns what mkfs said."""
        force = ["-f"] if self.given and "-f" not in options else []
        return run(BIN / "mkfs.streamfs", *force, *options, "--meta", self.meta, self.data).stdout

    def mount(self, *options: str, before: Callable[[], None] | None = None) -> Mount:
        """Mount in the foreground, as a child of this process that does `before` first."""
        everywhere = os.environ.get("STREAMFS_TEST_OPTIONS", "").split(",")
        listed = ",".join([f"meta={self.meta}", *options, *filter(None, everywhere)])
        words = [str(BIN / "streamfs"), self.data, str(self.point), "-f", "-o", listed]
        mount = Mount(words, self.point, self.folder / "log", before)
        self.mounts.append(mount)
        return mount

    def fsck(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Check, without asserting anything."""
        return run(BIN / "fsck.streamfs", *options, "--meta", self.meta, self.data, check=False)

    def assert_sound(self) -> None:
        """fsck finds nothing to complain about."""
        done = self.fsck("-n", "-f")
        assert done.returncode == 0, done.stdout + done.stderr

    def end(self) -> None:
        """Whatever happened, leave no mount behind."""
        for mount in self.mounts:
            mount.end()
