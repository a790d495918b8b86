"""streamctl grow on a mount that is full and in use."""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

MIB = 1 << 20
REFUSED = 70
TOO_SMALL = 74


class FilePair:
    """META and DATA as two files, and the mounts made of them."""

    def __init__(self, folder: Path) -> None:
        self.data, self.meta, self.point = folder / "data", folder / "META", folder / "mnt"
        self.log = folder / "log"
        self.point.mkdir()
        self.mounts: list[Mount] = []

    def make(self, mib: int, *options: str) -> None:
        """Format it."""
        self.lengthen(mib)
        run(BIN / "mkfs.streamfs", *options, "--meta", self.meta, self.data)

    def lengthen(self, mib: int) -> None:
        """DATA has so much from now on."""
        with self.data.open("ab") as file:
            file.truncate(mib * MIB)

    def mount(self) -> Mount:
        """Mount it in the foreground."""
        words = [str(BIN / "streamfs"), str(self.data), str(self.point), "-f"]
        self.mounts.append(Mount([*words, "-o", f"meta={self.meta}"], self.point, self.log))
        return self.mounts[-1]

    def grow(self, *options: str) -> dict[str, Any]:
        """streamctl grow, and what it says."""
        said = run(BIN / "streamctl", "grow", *options, "--json", self.point).stdout
        answer: dict[str, Any] = json.loads(said)
        return answer

    def size(self) -> int:
        """Bytes of the filesystem, as df sees them."""
        now = os.statvfs(self.point)
        return now.f_blocks * now.f_frsize

    def assert_sound(self) -> None:
        """fsck finds nothing to complain about."""
        done = run(BIN / "fsck.streamfs", "-n", "-f", "--meta", self.meta, self.data, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def files(tmp_path: Path, needs_fuse: None) -> Iterator[FilePair]:  # noqa: ARG001
    """Two files, whose mounts are gone at the end."""
    pair = FilePair(tmp_path)
    yield pair
    for mount in pair.mounts:
        mount.end()


def fill(folder: Path, prefix: str) -> dict[str, str]:
    """Write files of 4 MiB until there is no room; name to hash of those that are whole."""
    hashes: dict[str, str] = {}
    for number in range(1000):
        content = os.urandom(4 * MIB)
        path = folder / f"{prefix}{number}"
        try:
            with path.open("wb", buffering=0) as file:
                file.write(content)
                os.fsync(file.fileno())
        except OSError:
            path.unlink()
            return hashes
        hashes[path.name] = hashlib.sha256(content).hexdigest()
    pytest.fail("it never filled up")


def assert_there(folder: Path, hashes: dict[str, str]) -> None:
    """Every file has the content it was given."""
    for name, expected in hashes.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name


class BackgroundWriter:
    """Writes, syncs, reads and removes files until it is stopped."""

    def __init__(self, folder: Path) -> None:
        self.rounds = 0
        self._folder, self._stop = folder, threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        path = self._folder / "busy"
        try:
            while not self._stop.is_set():
                content = os.urandom(100_000)
                with path.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                assert path.read_bytes() == content
                path.unlink()
                self.rounds += 1
        except (OSError, AssertionError) as error:
            self._failure = error

    def wait_for_a_round(self) -> None:
        """It goes on writing."""
        seen = self.rounds
        until(lambda: self.rounds > seen, 30, "a round of writing")

    def stop(self) -> None:
        """End it; what it met is raised."""
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def test_a_full_filesystem_takes_more_while_programs_write(files: FilePair) -> None:
    files.make(128)
    mount = files.mount()
    assert files.grow()["before"] == files.grow()["after"]
    hashes = fill(files.point, "old")
    (files.point / "old0").unlink()
    del hashes["old0"]
    small, units = files.size(), mount.status()["space"]["heap_units"]
    writer = BackgroundWriter(files.point)
    for mib in (192, 256, 512):
        files.lengthen(mib)
        promised = files.grow("--dry-run")
        assert files.size() < promised["after"]["data_bytes"] - 32 * MIB
        grown = files.grow()
        assert grown["after"] == promised["after"]
        assert grown["after"]["data_bytes"] == mib * MIB
        assert files.size() > (mib - 24) * MIB  # the log takes some
        writer.wait_for_a_round()
    writer.stop()
    hashes |= fill(files.point, "new")
    status = mount.status()["space"]
    assert status["data_blocks"] * 4096 == files.size() > 3 * small
    assert status["heap_units"] > units
    assert len(hashes) > 100
    mount.unmount()
    files.assert_sound()
    mount = files.mount()
    assert files.size() > 3 * small
    assert_there(files.point, hashes)


def test_a_kill_right_after_a_growth_loses_nothing(files: FilePair) -> None:
    files.make(128)
    mount = files.mount()
    hashes = fill(files.point, "old")
    files.lengthen(256)
    files.grow()
    hashes |= fill(files.point, "new")
    mount.kill()
    files.mount()
    assert files.size() > 240 * MIB  # the log takes some
    assert_there(files.point, hashes)
    files.mounts[-1].unmount()
    files.assert_sound()


def test_meta_that_is_lost_comes_back_at_its_new_size(files: FilePair) -> None:
    files.make(128, "--meta-log")
    mount = files.mount()
    files.lengthen(512)
    after = files.grow()["after"]
    hashes = fill(files.point, "f")
    mount.kill()
    files.meta.unlink()
    run(BIN / "fsck.streamfs", "--restore", "--meta", files.meta, files.data)
    assert files.meta.stat().st_size == after["meta_bytes"]
    files.mount()
    assert files.size() > 400 * MIB
    assert_there(files.point, hashes)
    files.mounts[-1].unmount()
    files.assert_sound()


@pytest.mark.quick
def test_meta_alone_can_grow(files: FilePair) -> None:
    files.make(128)
    mount = files.mount()
    before = os.statvfs(files.point).f_files
    said = run(BIN / "streamctl", "grow", "--meta-size", "16M", files.point).stdout
    assert "-> 16.0 MiB" in said
    assert os.statvfs(files.point).f_files > 2 * before
    for number in range(3000):
        (files.point / str(number)).touch()
    mount.unmount()
    files.assert_sound()


def test_meta_alone_that_is_logged_grows_and_comes_back(files: FilePair) -> None:
    files.make(128, "--meta-log")
    mount = files.mount()
    (files.point / "old").write_bytes(b"old" * MIB)
    after = files.grow("--meta-size", "24M")["after"]
    assert after["meta_bytes"] == 24 * MIB
    run(BIN / "streamctl", "sync", files.point)
    hashes = fill(files.point, "new")
    mount.kill()
    files.meta.unlink()
    run(BIN / "fsck.streamfs", "--restore", "--meta", files.meta, files.data)
    assert files.meta.stat().st_size == 24 * MIB
    files.mount()
    assert_there(files.point, hashes)
    assert (files.point / "old").read_bytes() == b"old" * MIB
    files.mounts[-1].unmount()
    files.assert_sound()


def test_what_cannot_be_is_refused_with_a_sentence(files: FilePair) -> None:
    files.make(128, "--meta-log")
    mount = files.mount()

    def refused(code: int, sentence: str, *options: str) -> None:
        done = run(BIN / "streamctl", "grow", *options, files.point, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert sentence in done.stderr

    size = files.meta.stat().st_size
    shrink = f"META cannot shrink from {size / MIB:.1f} MiB to 1.0 MiB"
    refused(REFUSED, shrink, "--meta-size", "1M")
    refused(TOO_SMALL, "make DATA larger too", "--meta-size", "64M")
    assert files.meta.stat().st_size == size
    files.lengthen(100)
    of = "the filesystem has 128.0 MiB, but the device has only 100.0 MiB"
    refused(REFUSED, f"DATA cannot shrink: {of}")
    files.lengthen(128)
    mount.unmount()
    files.assert_sound()


def test_an_emulated_ssd_says_that_it_cannot_grow(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(size="256M")
    pair.mkfs()
    mount = pair.mount()
    said = run(BIN / "streamctl", "grow", mount.point).stdout
    assert "an emulated SSD cannot grow" in said
    assert "nothing to do" in said
