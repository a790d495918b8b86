"""The behaviour that programs may rely on: POSIX, seen through a real mount."""

import ctypes
import errno
import fcntl
import mmap
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE = 1, 2, 16


def renameat2(source: Path, target: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, bytes(source), -100, bytes(target), flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    wide = ctypes.c_int64
    if libc.fallocate(fd, mode, wide(offset), wide(length)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def fill(path: Path) -> None:
    """Write a mebibyte at a time, durably, without end."""
    with path.open("wb", buffering=0) as file:
        for _ in range(2000):
            file.write(bytes(range(256)) * 4096)
            os.fsync(file.fileno())


def as_nobody(mount: Mount, *words: str, check: bool = True) -> CompletedProcess[str]:
    """Run in the mount's root, which is reached although the folders above it are private."""
    drop = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    return run(*drop, *words, cwd=mount.point, check=check)


def expect_errno(code: int, action: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        action(*arguments)


@pytest.mark.quick
def test_what_is_written_is_read_again_also_after_a_remount(pair: Pair) -> None:
    mount = pair.mount()
    content = os.urandom(3_000_001)
    (mount / "a").write_bytes(content)
    (mount / "d").mkdir()
    (mount / "d/b").write_text("below")
    assert (mount / "a").read_bytes() == content
    mount.unmount()
    mount = pair.mount()
    assert (mount / "a").read_bytes() == content
    assert (mount / "d/b").read_text() == "below"
    mount.unmount()
    pair.assert_sound()


def test_truncating_opens_empty_a_file(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_bytes(b"x" * 100_000)
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
    assert path.stat().st_size == 0
    path.write_bytes(b"new")
    assert path.read_bytes() == b"new"


def test_a_file_cut_and_grown_again_reads_zeroes(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_bytes(b"x" * 10_000)
    os.truncate(path, 5_000)
    os.truncate(path, 10_000)
    assert path.read_bytes() == b"x" * 5_000 + bytes(5_000)


def test_appends_from_many_threads_lose_nothing(mounted: Mount) -> None:
    path = mounted / "log"

    def append(letter: int) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for _ in range(500):
            os.write(fd, bytes([letter]) * 99 + b"\n")
        os.close(fd)

    threads = [threading.Thread(target=append, args=(65 + i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = path.read_bytes().splitlines()
    assert len(lines) == 2_000
    assert all(len(line) == 99 and len(set(line)) == 1 for line in lines)


def test_exclusive_creation_succeeds_once(mounted: Mount) -> None:
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    os.close(os.open(mounted / "a", flags))
    expect_errno(errno.EEXIST, os.open, mounted / "a", flags)


@pytest.mark.quick
def test_hard_links_are_one_file(mounted: Mount) -> None:
    (mounted / "a").write_text("one")
    os.link(mounted / "a", mounted / "b")
    (mounted / "b").write_text("two")
    assert (mounted / "a").read_text() == "two"
    assert (mounted / "a").stat().st_nlink == 2
    assert (mounted / "a").stat().st_ino == (mounted / "b").stat().st_ino
    (mounted / "a").unlink()
    assert (mounted / "b").stat().st_nlink == 1
    assert (mounted / "b").read_text() == "two"


@pytest.mark.quick
def test_a_file_unlinked_while_open_lives_until_closed_and_frees_its_space(pair: Pair) -> None:
    mount = pair.mount()
    run("sync", "-f", mount.point)
    fd = os.open(mount / "a", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"still here" * 100_000)
    (mount / "a").unlink()
    os.fsync(fd)
    assert os.pread(fd, 10, 999_990) == b"still here"
    assert os.fstat(fd).st_nlink == 0
    os.close(fd)
    mount.unmount()
    report = pair.fsck("-n", "-f")
    assert report.returncode == 0, report.stdout
    assert "0 files" in report.stdout
    assert "0 orphans" in report.stdout


@pytest.mark.quick
def test_private_and_shared_mappings(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_bytes(b"a" * 8192)
    with path.open("r+b") as file:
        private = mmap.mmap(file.fileno(), 8192, access=mmap.ACCESS_COPY)
        shared = mmap.mmap(file.fileno(), 8192)
        private[0:7] = b"private"
        shared[4096:4102] = b"shared"
        assert os.pread(file.fileno(), 6, 4096) == b"shared"
        assert os.pread(file.fileno(), 7, 0) == b"a" * 7
        shared.flush()
        private.close()
        shared.close()
    assert path.read_bytes()[4096:4102] == b"shared"


@pytest.mark.quick
def test_holes_take_no_space_and_read_as_zeroes(mounted: Mount) -> None:
    with (mounted / "a").open("wb") as file:
        file.write(b"start")
        file.seek(100 << 20)
        file.write(b"end")
        os.fsync(file.fileno())
    assert (mounted / "a").stat().st_blocks * 512 < 1 << 20
    with (mounted / "a").open("rb") as file:
        assert file.read(5) == b"start"
        file.seek(50 << 20)
        assert file.read(4096) == bytes(4096)
        assert os.lseek(file.fileno(), 4096, os.SEEK_DATA) == 100 << 20
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == 4096
        file.seek(100 << 20)
        assert file.read() == b"end"


def test_offsets_beyond_four_gibibytes(pair: Pair) -> None:
    mount = pair.mount()
    places = [(5 << 30) + 17, (4 << 30) - 2, 123 << 30]
    with (mount / "big").open("wb") as file:
        for place in places:
            os.pwrite(file.fileno(), str(place).encode(), place)
    mount.unmount()
    mount = pair.mount()
    with (mount / "big").open("rb") as file:
        for place in places:
            assert os.pread(file.fileno(), len(str(place)), place) == str(place).encode()
    assert (mount / "big").stat().st_size == places[2] + len(str(places[2]))


@pytest.mark.quick
def test_punched_and_zeroed_ranges_read_as_zeroes(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_bytes(b"x" * 65536)
    fd = os.open(path, os.O_RDWR)
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, 20000)
    fallocate(fd, FALLOC_FL_ZERO_RANGE, 40000, 1000)
    fallocate(fd, FALLOC_FL_KEEP_SIZE, 65536, 1 << 20)
    assert os.fstat(fd).st_size == 65536
    fallocate(fd, 0, 65536, 4096)
    os.close(fd)
    expected = b"x" * 5000 + bytes(20000) + b"x" * 15000 + bytes(1000) + b"x" * 24536 + bytes(4096)
    assert path.read_bytes() == expected


def test_a_directory_of_100_000_names(pair: Pair) -> None:
    pair.meta = pair.folder / "roomy"
    pair.mkfs("-f", "--meta-size", "128M")
    mount = pair.mount()
    (mount / "d").mkdir()
    for i in range(100_000):
        os.mknod(mount / f"d/name-{i:06}")
    assert len(names(mount / "d")) == 100_000
    assert sum(1 for entry in os.scandir(mount / "d") if entry.is_file()) == 100_000
    mount.unmount()
    mount = pair.mount()
    assert names(mount / "d") == {f"name-{i:06}" for i in range(100_000)}
    for i in range(0, 100_000, 2):
        (mount / f"d/name-{i:06}").unlink()
    assert len(names(mount / "d")) == 50_000
    mount.unmount()
    pair.assert_sound()


@pytest.mark.quick
def test_rename_and_its_flags(mounted: Mount) -> None:
    a, b = mounted / "a", mounted / "b"
    a.write_text("A")
    b.write_text("B")
    expect_errno(errno.EEXIST, renameat2, a, b, RENAME_NOREPLACE)
    renameat2(a, b, RENAME_EXCHANGE)
    assert (a.read_text(), b.read_text()) == ("B", "A")
    a.rename(b)
    assert b.read_text() == "B"
    assert not a.exists()
    renameat2(b, a, RENAME_NOREPLACE)
    assert a.read_text() == "B"


def test_directories_move_but_not_into_themselves(mounted: Mount) -> None:
    (mounted / "d/e").mkdir(parents=True)
    (mounted / "f").mkdir()
    expect_errno(errno.EINVAL, os.rename, mounted / "d", mounted / "d/e/d")
    (mounted / "d").rename(mounted / "f/d")
    assert (mounted / "f/d/e").is_dir()
    assert (mounted.point.stat().st_nlink, (mounted / "f").stat().st_nlink) == (3, 3)
    expect_errno(errno.ENOTEMPTY, os.rmdir, mounted / "f")


def test_modes_owners_and_times(pair: Pair) -> None:
    mount = pair.mount()
    path = mount / "a"
    path.write_text("x")
    path.chmod(0o4751)
    assert stat.S_IMODE(path.stat().st_mode) == 0o4751
    os.chown(path, 1234, 5678)
    assert stat.S_IMODE(path.stat().st_mode) == 0o751, "chown takes setuid away"
    os.utime(path, ns=(1_000_000_001, -5_000_000_007))
    mount.unmount()
    found = (pair.mount() / "a").stat()
    assert (found.st_uid, found.st_gid) == (1234, 5678)
    assert (found.st_atime_ns, found.st_mtime_ns) == (1_000_000_001, -5_000_000_007)


def test_children_of_a_setgid_directory_inherit_its_group(mounted: Mount) -> None:
    (mounted / "d").mkdir()
    os.chown(mounted / "d", 0, 4321)
    (mounted / "d").chmod(0o2775)
    (mounted / "d/file").write_text("x")
    (mounted / "d/sub").mkdir()
    assert (mounted / "d/file").stat().st_gid == 4321
    assert (mounted / "d/sub").stat().st_gid == 4321
    assert (mounted / "d/sub").stat().st_mode & stat.S_ISGID


@pytest.mark.quick
def test_a_write_by_another_user_takes_setuid_away(mounted: Mount) -> None:
    path = mounted / "program"
    path.write_text("x")
    path.chmod(0o4777)
    as_nobody(mounted, "sh", "-c", "echo y >> program")
    assert stat.S_IMODE(path.stat().st_mode) == 0o777


@pytest.mark.quick
def test_permissions_are_enforced(mounted: Mount) -> None:
    (mounted / "secret").write_text("x")
    (mounted / "secret").chmod(0o600)
    done = as_nobody(mounted, "cat", "secret", check=False)
    assert done.returncode != 0
    assert "Permission denied" in done.stderr


def test_special_files_and_links(mounted: Mount) -> None:
    os.mkfifo(mounted / "fifo")
    os.mknod(mounted / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (mounted / "long").symlink_to("x" * 3000)
    (mounted / "short").symlink_to("fifo")
    assert stat.S_ISFIFO((mounted / "short").stat().st_mode)
    assert (mounted / "null").stat().st_rdev == os.makedev(1, 3)
    assert str((mounted / "long").readlink()) == "x" * 3000


def test_names_of_255_bytes_but_no_longer(mounted: Mount) -> None:
    name = "é" * 127 + "x"
    (mounted / name).write_text("long")
    assert names(mounted.point) == {name}
    expect_errno(errno.ENAMETOOLONG, os.open, mounted / ("x" * 256), os.O_CREAT | os.O_RDWR)


@pytest.mark.quick
def test_extended_attributes(pair: Pair) -> None:
    mount = pair.mount()
    (mount / "a").write_text("x")
    big = os.urandom(3000)
    os.setxattr(mount / "a", "user.small", b"1")
    os.setxattr(mount / "a", "user.big", big)
    os.setxattr(mount / "a", "trusted.mine", b"2")
    expect_errno(errno.EEXIST, os.setxattr, mount / "a", "user.small", b"3", os.XATTR_CREATE)
    expect_errno(errno.ENODATA, os.getxattr, mount / "a", "user.none")
    mount.unmount()
    mount = pair.mount()
    assert os.getxattr(mount / "a", "user.big") == big
    assert set(os.listxattr(mount / "a")) == {"user.small", "user.big", "trusted.mine"}
    os.removexattr(mount / "a", "user.big")
    assert "user.big" not in os.listxattr(mount / "a")


@pytest.mark.quick
def test_locks_exclude_each_other(mounted: Mount) -> None:
    with (mounted / "a").open("w") as first, (mounted / "a").open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        expect_errno(errno.EWOULDBLOCK, fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_hints_by_attribute_are_inherited_from_directories(mounted: Mount) -> None:
    (mounted / "d").mkdir()
    os.setxattr(mounted / "d", "user.streamfs.vstream", b"cold")
    (mounted / "d/file").write_text("x")
    assert os.getxattr(mounted / "d/file", "user.streamfs.vstream") == b"cold"


@pytest.mark.quick
def test_a_full_filesystem_says_so_and_deleting_still_works(pair: Pair) -> None:
    mount = pair.mount()
    with pytest.raises(OSError, match="No space left"):
        fill(mount / "big")
    (mount / "big").unlink()
    run(BIN / "streamctl", "sync", mount.point, check=False)  # tells of the failed write once
    (mount / "after").write_bytes(b"x" * 1_000_000)
    fd = os.open(mount / "after", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    mount.unmount()
    pair.assert_sound()
