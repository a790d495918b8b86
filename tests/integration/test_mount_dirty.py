"""Data that only the kernel knows yet: copies of files being written, and renames over a file."""

import contextlib
import os
from pathlib import Path

import pytest
from tests.integration.pairs import Pair, run


def dirty_file(path: Path) -> int:
    """Open a sparse file of 3 MiB whose pages are all still dirty; returns the descriptor."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"head" * 1000, 0)
    os.pwrite(fd, b"middle" * 1000, (1 << 20) + 5)
    os.pwrite(fd, b"tail" * 1000, (3 << 20) - 4000)
    return fd


def test_seek_finds_data_written_a_moment_ago(pair: Pair) -> None:
    """Copies start with SEEK_DATA; the kernel asks for it without writing dirty pages back."""
    mount = pair.mount()
    for i in range(20):
        fd = os.open(mount / f"file{i}", os.O_CREAT | os.O_RDWR)
        os.pwrite(fd, b"head" * 1000, 0)
        os.pwrite(fd, bytes(4096 * 50), 1 << 20)
        assert os.lseek(fd, 0, os.SEEK_DATA) == 0
        assert os.lseek(fd, 0, os.SEEK_HOLE) == 4096
        assert os.lseek(fd, 4096, os.SEEK_DATA) == 1 << 20
        os.close(fd)


def test_cp_of_a_file_open_and_dirty_copies_its_bytes(pair: Pair) -> None:
    mount = pair.mount()
    fd = dirty_file(mount / "a")
    run("cp", "--sparse=auto", mount / "a", pair.folder / "copy")
    run("cp", "--sparse=always", mount / "a", mount / "copy")
    os.close(fd)
    expected = (mount / "a").read_bytes()
    assert expected[:4] == b"head"
    assert (pair.folder / "copy").read_bytes() == expected
    assert (mount / "copy").read_bytes() == expected


def test_tar_of_a_file_open_and_dirty_keeps_its_bytes(pair: Pair) -> None:
    mount = pair.mount()
    fd = dirty_file(mount / "a")
    run("tar", "-S", "-C", mount.point, "-cf", pair.folder / "t.tar", "a")
    os.close(fd)
    run("tar", "-C", pair.folder, "-xf", pair.folder / "t.tar")
    assert (pair.folder / "a").read_bytes() == (mount / "a").read_bytes()
    assert (pair.folder / "a").read_bytes()[-4:] == b"tail"


@pytest.mark.parametrize("size", [5, 70_000, 3_000_000])
def test_a_dirty_file_renamed_over_another_is_never_empty_after_a_kill(
    pair: Pair, size: int
) -> None:
    mount = pair.mount()
    old, new = b"o" * size, b"n" * size
    for i in range(5):
        with (mount / f"file{i}").open("wb") as file:
            file.write(old)
            os.fsync(file.fileno())
    for i in range(5):
        (mount / f"new{i}").write_bytes(new)
        (mount / f"new{i}").rename(mount / f"file{i}")
    mount.kill()
    pair.assert_sound()
    mount = pair.mount()
    for i in range(5):
        assert (mount / f"file{i}").read_bytes() == new


def test_what_was_dirty_is_written_when_the_mount_goes_away(pair: Pair) -> None:
    mount = pair.mount()
    fd = dirty_file(mount / "a")
    mount.process.terminate()  # busy: a file is open
    assert mount.process.wait(30) == 0
    with contextlib.suppress(OSError):
        os.close(fd)
    mount = pair.mount()
    assert (mount / "a").read_bytes()[:4] == b"head"
    assert (mount / "a").stat().st_size == 3 << 20
