"""A full disk: who hears of it and when, and what is kept."""

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.pairs import Mount, Pair, run, until
from tests.integration.transport import TRANSPORTS

MIB = 1 << 20
SLACK_BYTES = 64 * MIB  # a writer hears of a full disk within these
SETTLE_SECONDS = 20.0
PIECE = os.urandom(MIB)

pytestmark = [
    pytest.mark.parametrize("transport", TRANSPORTS),
    pytest.mark.usefixtures("io_uring_allowed"),
]


@pytest.fixture
def small(make_pair: Callable[..., Pair]) -> Pair:
    """A filesystem that is soon full, not mounted."""
    pair = make_pair(size="128M")
    pair.mkfs()
    return pair


@pytest.fixture
def mount(small: Pair, transport: str) -> Mount:
    """The same, mounted."""
    return small.mount(*TRANSPORTS[transport])


@pytest.fixture
def fd(mount: Mount) -> Iterator[int]:
    """A file that is not closed before the test ends."""
    opened = os.open(mount / "filled", os.O_RDWR | os.O_CREAT)
    yield opened
    close(opened)


def close(fd: int) -> int:
    """Close a file; returns the error."""
    try:
        os.close(fd)
    except OSError as error:
        return error.errno or -1
    return 0


def free_bytes(mount: Mount) -> int:
    """Space for data."""
    found = os.statvfs(mount.point)
    return found.f_bavail * found.f_frsize


def piece(index: int) -> bytes:
    """Return the content of a MiB of a file, each another."""
    return index.to_bytes(8, "little") + PIECE[8:]


def fill(fd: int, most_bytes: int) -> int:
    """Write until there is no space; returns how much was taken."""
    taken = 0
    while taken < most_bytes:
        try:
            taken += os.write(fd, piece(taken // MIB)[taken % MIB :])
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017
            return taken
    pytest.fail(f"nobody said that the disk is full after {taken} bytes")


def forget_error(fd: int) -> None:
    """Let fsync(2) tell of what is lost already, as it does once."""
    try:
        os.fsync(fd)
    except OSError as error:
        assert error.errno == errno.ENOSPC  # noqa: PT017


def settled_size(path: Path) -> int:
    """Size of a file once it has not changed for half a second."""
    seen = [path.stat().st_size, time.monotonic()]

    def rests() -> bool:
        now = path.stat().st_size
        if now != seen[0]:
            seen[:] = [now, time.monotonic()]
        return time.monotonic() - seen[1] > 0.5

    until(rests, SETTLE_SECONDS, "a size that rests")
    return int(seen[0])


def assert_stored(path: Path, size: int) -> None:
    """Every byte that the size shows is one that was written."""
    content = path.read_bytes()
    assert len(content) == size
    wrong = [
        index
        for index in range(0, (size + MIB - 1) // MIB)
        if content[index * MIB : (index + 1) * MIB] != piece(index)[: size - index * MIB]
    ]
    assert wrong == []


def test_a_writer_hears_of_it_and_sizes_outlive_a_remount(
    small: Pair, mount: Mount, transport: str
) -> None:
    free = free_bytes(mount)
    opened = os.open(mount / "filled", os.O_RDWR | os.O_CREAT)
    fill(opened, free + SLACK_BYTES)
    size = settled_size(mount / "filled")
    assert free * 0.9 < size == os.fstat(opened).st_size <= free
    assert_stored(mount / "filled", size)
    assert close(opened) == 0  # write(2) has said it
    mount.unmount()
    small.assert_sound()
    again = small.mount(*TRANSPORTS[transport])
    assert (again / "filled").stat().st_size == size
    assert_stored(again / "filled", size)


def test_what_the_file_has_can_be_overwritten(small: Pair, mount: Mount, fd: int) -> None:
    kept = os.open(mount / "kept", os.O_RDWR | os.O_CREAT)
    os.write(kept, piece(0) * 4)
    os.fsync(kept)
    fill(fd, free_bytes(mount) + SLACK_BYTES)
    settled_size(mount / "filled")
    forget_error(fd)
    for each, size in ((kept, 4), (fd, 8)):
        for index in range(size):
            assert os.pwrite(each, piece(1000 + index), index * MIB) == MIB
        os.fsync(each)
    os.close(kept)
    mount.kill()
    again = small.mount()
    for name, size in (("kept", 4), ("filled", 8)):
        content = (again / name).read_bytes()
        assert all(content[index * MIB :][:MIB] == piece(1000 + index) for index in range(size)), (
            name
        )


def test_a_failed_copy_shows_only_what_was_stored(
    small: Pair, mount: Mount, transport: str, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    with source.open("wb") as out:
        for index in range(free_bytes(mount) // MIB + 10):
            out.write(piece(index))
    done = subprocess.run(
        ["cp", "--reflink=never", source, mount / "copy"], capture_output=True, timeout=60
    )
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    size = settled_size(mount / "copy")
    assert_stored(mount / "copy", size)
    mount.unmount()
    again = small.mount(*TRANSPORTS[transport])
    assert (again / "copy").stat().st_size == size
    assert_stored(again / "copy", size)


def test_what_is_removed_makes_room_at_once(mount: Mount, fd: int) -> None:
    (mount / "spare").write_bytes(PIECE * 16)
    run("sync", "-f", mount / "spare")
    fill(fd, free_bytes(mount) + SLACK_BYTES)
    size = settled_size(mount / "filled")
    forget_error(fd)
    (mount / "spare").unlink()
    taken = [os.pwrite(fd, PIECE, size + index * MIB) for index in range(12)]
    assert taken == [MIB] * 12
    os.fsync(fd)
    os.ftruncate(fd, MIB)
    os.fsync(fd)
    assert os.fstat(fd).st_size == MIB
    (mount / "filled").unlink()


def test_a_full_disk_can_be_looked_at_and_emptied(mount: Mount, fd: int) -> None:
    fill(fd, free_bytes(mount) + SLACK_BYTES)
    assert os.fstat(fd).st_size > 0
    assert "filled" in run("ls", "-l", mount.point).stdout
    assert os.pread(fd, MIB, 0) == piece(0)
    assert os.pread(fd, MIB, os.fstat(fd).st_size + MIB) == b""
    assert os.lseek(fd, 0, os.SEEK_END) == os.fstat(fd).st_size
    os.ftruncate(fd, 0)
    assert os.write(fd, PIECE) == MIB
    (mount / "filled").unlink()


def test_a_new_file_inherits_no_loss(mount: Mount) -> None:
    lossy = os.open(mount / "lossy", os.O_WRONLY | os.O_CREAT)
    os.write(lossy, PIECE * (free_bytes(mount) // MIB + 2))
    forget_error(lossy)
    number = os.fstat(lossy).st_ino
    (mount / "lossy").unlink()
    close(lossy)
    names = (mount / f"new{index}" for index in range(100))
    for name in names:
        name.write_bytes(PIECE[:4096])
        if name.stat().st_ino == number:
            return
    pytest.fail("no new file has the number of the removed one")
