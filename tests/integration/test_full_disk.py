"""A full disk: who hears of it and when, and what is kept."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.pairs import Mount, Pair, run, until
from tests.integration.transport import TRANSPORTS

MIB = 1 << 20
SLACK_BYTES = 64 * MIB  # a writer hears of a full disk within these
SPACE_SECONDS = 20.0
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


def fill(fd: int, most_bytes: int, taken: int = 0, *, full: bool = True) -> int:
    """Write until there is no space, or `most_bytes` if `full` is not expected; returns the end."""
    while taken < most_bytes:
        try:
            taken += os.write(fd, piece(taken // MIB)[taken % MIB :])
        except OSError as error:
            assert full
            assert error.errno == errno.ENOSPC  # noqa: PT017
            return taken
    if full:
        pytest.fail(f"nobody said that the disk is full after {taken} bytes")
    return taken


def until_synced(fd: int) -> None:
    """Sync a file; what is lost already is told a few times at most."""
    for _ in range(5):
        try:
            os.fsync(fd)
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017
        else:
            return
    pytest.fail("fsync fails again and again")


def overwrite(fd: int, content: bytes, at: int) -> None:
    """Write; a loss that was not told yet may be told to this write, once."""
    try:
        done = os.pwrite(fd, content, at)
    except OSError as error:
        assert error.errno == errno.ENOSPC  # noqa: PT017
        done = os.pwrite(fd, content, at)
    assert done == len(content)


def test_a_writer_hears_of_it_and_keeps_what_was_synced(
    small: Pair, mount: Mount, transport: str
) -> None:
    free = free_bytes(mount)
    opened = os.open(mount / "filled", os.O_RDWR | os.O_CREAT)
    synced = fill(opened, free // 2 // MIB * MIB, full=False)
    os.fsync(opened)
    os.lseek(opened, synced, os.SEEK_SET)
    assert fill(opened, free + SLACK_BYTES, synced) > free * 0.9
    close(opened)
    mount.unmount()
    small.assert_sound()
    again = small.mount(*TRANSPORTS[transport])
    content = (again / "filled").read_bytes()
    assert synced <= len(content)
    for index in range(synced // MIB):
        assert content[index * MIB :][:MIB] == piece(index)


def test_what_the_file_has_can_be_overwritten(small: Pair, mount: Mount, fd: int) -> None:
    kept = os.open(mount / "kept", os.O_RDWR | os.O_CREAT)
    os.write(kept, piece(0) * 4)
    os.fsync(kept)
    fill(fd, free_bytes(mount) + SLACK_BYTES)
    until_synced(fd)
    for each, size in ((kept, 4), (fd, 8)):
        for index in range(size):
            overwrite(each, piece(1000 + index), index * MIB)
        until_synced(each)
    os.close(kept)
    mount.kill()
    again = small.mount()
    for name, size in (("kept", 4), ("filled", 8)):
        content = (again / name).read_bytes()
        assert all(content[index * MIB :][:MIB] == piece(1000 + index) for index in range(size)), (
            name
        )


def test_a_copy_fails(mount: Mount, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as out:
        for index in range(free_bytes(mount) // MIB + 10):
            out.write(piece(index))
    done = subprocess.run(
        ["cp", "--reflink=never", source, mount / "copy"], capture_output=True, timeout=60
    )
    assert done.returncode == 1
    assert b"No space left" in done.stderr


def test_what_is_removed_makes_room(mount: Mount, fd: int) -> None:
    (mount / "spare").write_bytes(PIECE * 16)
    run("sync", "-f", mount / "spare")
    taken = fill(fd, free_bytes(mount) + SLACK_BYTES)
    until_synced(fd)
    (mount / "spare").unlink()
    until(lambda: free_bytes(mount) >= 12 * MIB, SPACE_SECONDS, "the space of a removed file")
    for index in range(8):
        overwrite(fd, PIECE, taken + index * MIB)
    until_synced(fd)
    os.ftruncate(fd, MIB)
    os.fsync(fd)
    assert os.fstat(fd).st_size == MIB
    (mount / "filled").unlink()


def test_a_full_disk_can_be_looked_at_and_emptied(mount: Mount, fd: int) -> None:
    fill(fd, free_bytes(mount) + SLACK_BYTES)
    assert os.fstat(fd).st_size > 0
    assert "filled" in run("ls", "-l", mount.point).stdout
    assert os.pread(fd, MIB, 0) == piece(0)
    assert os.lseek(fd, 0, os.SEEK_END) == os.fstat(fd).st_size
    os.ftruncate(fd, 0)
    assert os.write(fd, PIECE) == MIB
    (mount / "filled").unlink()
