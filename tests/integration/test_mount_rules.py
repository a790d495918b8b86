"""The finer rules of a local filesystem, seen through a real mount."""

import ctypes
import errno
import os
import re
import stat
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import Mount, Pair, run

RENAME_EXCHANGE, RENAME_WHITEOUT = 2, 4
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE = 8, 32, 64
AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
# cap_net_raw, permitted and effective: VFS_CAP_REVISION_2.
CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
YEAR_2446 = (1 << 34) - 1 - (1 << 31)

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """Turn libc's -1 into an exception."""
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def fallocate(path: Path, mode: int, offset: int = 0, length: int = 4096) -> None:
    fd = os.open(path, os.O_RDWR)
    wide = ctypes.c_int64
    try:
        checked(libc.fallocate(fd, mode, wide(offset), wide(length)))
    finally:
        os.close(fd)


def renameat2(source: Path, target: Path, flags: int) -> None:
    checked(libc.renameat2(AT_FDCWD, bytes(source), AT_FDCWD, bytes(target), flags))


def utimensat(path: Path, *times: tuple[int, int]) -> None:
    packed = struct.pack("4q", *times[0], *times[1])
    checked(libc.utimensat(AT_FDCWD, bytes(path), packed, 0))


def expect_errno(code: int, action: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        action(*arguments)


def as_nobody(mount: Mount, script: str) -> None:
    run(*NOBODY, "sh", "-c", script, cwd=mount.point)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def program(mounted: Mount) -> Path:
    """A file everyone may write, with setuid and setgid."""
    path = mounted / "program"
    path.write_bytes(b"x" * 8192)
    os.chown(path, 65534, 65534)
    path.chmod(0o6777)
    return path


# ---- Extended attributes


def test_namespaces_of_attributes(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_text("x")
    path.chmod(0o644)
    for name in ("user.a", "trusted.a", "security.a"):
        os.setxattr(path, name, b"1")
    assert set(os.listxattr(path)) == {"user.a", "trusted.a", "security.a"}
    seen = run(*NOBODY, "getfattr", "-m", "-", "a", cwd=mounted.point).stdout.split()
    assert "user.a" in seen
    assert "trusted.a" not in seen
    expect_errno(errno.EOPNOTSUPP, os.setxattr, path, "unheard.of", b"1")
    expect_errno(errno.EOPNOTSUPP, os.setxattr, path, "system.unheard", b"1")
    expect_errno(errno.EINVAL, os.setxattr, path, "user.", b"1")
    (mounted / "link").symlink_to("a")
    expect_errno(
        errno.EPERM, lambda: os.setxattr(mounted / "link", "user.a", b"1", follow_symlinks=False)
    )
    os.setxattr(mounted / "link", "trusted.a", b"1", follow_symlinks=False)


def test_sizes_of_attributes(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_text("x")
    os.setxattr(path, "user.a", b"12345")
    small = ctypes.create_string_buffer(4)
    with pytest.raises(OSError, match=os.strerror(errno.ERANGE)):
        checked(libc.getxattr(bytes(path), b"user.a", small, 4))
    with pytest.raises(OSError, match=os.strerror(errno.ERANGE)):
        checked(libc.listxattr(bytes(path), small, 4))
    expect_errno(errno.ERANGE, os.setxattr, path, "user." + "n" * 251, b"1")
    os.setxattr(path, "user." + "n" * 250, b"1")
    expect_errno(errno.E2BIG, os.setxattr, path, "user.b", bytes(65537))
    expect_errno(errno.ENOSPC, os.setxattr, path, "user.b", bytes(65536))
    os.setxattr(path, "user.b", bytes(60000))


# ---- Names


def test_a_rename_may_leave_a_whiteout(pair: Pair) -> None:
    mount = pair.mount()
    (mount / "a").write_text("A")
    renameat2(mount / "a", mount / "b", RENAME_WHITEOUT)
    expect_errno(
        errno.EINVAL, renameat2, mount / "a", mount / "b", RENAME_WHITEOUT | RENAME_EXCHANGE
    )
    assert (mount / "b").read_text() == "A"
    left = (mount / "a").stat()
    assert stat.S_ISCHR(left.st_mode)
    assert (left.st_rdev, left.st_nlink) == (0, 1)
    mount.unmount()
    pair.assert_sound()


def test_an_unnamed_file_can_be_given_a_name(pair: Pair) -> None:
    mount = pair.mount()
    fd = os.open(mount.point, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"content")
    assert os.fstat(fd).st_nlink == 0
    assert not list(mount.point.iterdir())
    checked(libc.linkat(fd, b"", AT_FDCWD, bytes(mount / "named"), AT_EMPTY_PATH))
    os.close(fd)
    assert (mount / "named").read_bytes() == b"content"
    assert (mount / "named").stat().st_nlink == 1
    lost = os.open(mount.point, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(lost, b"x" * 100_000)
    os.close(lost)
    mount.unmount()
    assert "1 files" in pair.fsck("-n", "-f").stdout


def test_an_unnamed_file_that_is_exclusive_stays_unnamed(mounted: Mount) -> None:
    fd = os.open(mounted.point, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    with pytest.raises(FileNotFoundError):
        checked(libc.linkat(fd, b"", AT_FDCWD, bytes(mounted / "named"), AT_EMPTY_PATH))
    os.close(fd)


def test_names_are_any_bytes_but_slash_and_zero(pair: Pair) -> None:
    mount = pair.mount()
    every = bytes(byte for byte in range(1, 256) if byte != ord("/"))
    wanted = {every, b"\xff" * 255, b"\n", b" ", b"..."}
    for name in wanted:
        os.close(os.open(bytes(mount.point) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    mount.unmount()
    mount = pair.mount()
    assert {os.fsencode(path.name) for path in mount.point.iterdir()} == wanted


def test_in_a_sticky_directory_names_belong_to_owners(mounted: Mount) -> None:
    (mounted / "tmp").mkdir()
    (mounted / "tmp").chmod(0o1777)
    (mounted / "tmp/roots").write_text("x")
    as_nobody(mounted, "touch tmp/own && mv tmp/own tmp/mine && rm tmp/mine")
    for script in ("rm -f tmp/roots", "mv -f tmp/roots tmp/taken"):
        done = run(*NOBODY, "sh", "-c", script, cwd=mounted.point, check=False)
        assert "not permitted" in done.stderr


# ---- Privileges


@pytest.mark.parametrize(
    "change",
    [
        "echo y >> program",
        "dd if=/dev/zero of=program bs=1 count=1 conv=notrunc,fsync",
        "truncate -s 5 program",
        "truncate -s 50000 program",
        ": > program",
        "fallocate -l 100000 program",
        "fallocate -p -l 4096 program",
    ],
)
def test_a_change_by_a_user_takes_setuid_and_setgid_away(
    mounted: Mount, program: Path, change: str
) -> None:
    as_nobody(mounted, change)
    assert mode_of(program) == 0o777


def test_root_keeps_setuid_but_not_when_it_gives_a_file_away(program: Path) -> None:
    program.write_text("y")
    assert mode_of(program) == 0o6777
    os.chown(program, 1, 1)
    assert mode_of(program) == 0o777
    program.chmod(0o2767)  # not executable by the group: the bit means mandatory locking
    os.chown(program, 2, 2)
    assert mode_of(program) == 0o2767


def test_a_user_outside_the_group_cannot_set_setgid(mounted: Mount, program: Path) -> None:
    os.chown(program, 65534, 4321)
    as_nobody(mounted, "chmod 2755 program")
    assert mode_of(program) == 0o755


@pytest.mark.parametrize("change", ["write", "truncate", "fallocate", "punch", "chown"])
def test_a_change_takes_capabilities_away(program: Path, change: str) -> None:
    os.setxattr(program, "security.capability", CAPABILITY)
    if change == "write":
        with program.open("r+b") as file:
            file.write(b"y")
    elif change == "truncate":
        os.truncate(program, 5)
    elif change == "fallocate":
        fallocate(program, 0, 0, 100_000)
    elif change == "punch":
        fallocate(program, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
    else:
        os.chown(program, 1, 1)
    assert "security.capability" not in os.listxattr(program)


# ---- Times


def test_a_file_knows_when_it_was_born(mounted: Mount) -> None:
    path = mounted / "a"
    before = time.time()
    path.write_text("x")
    os.utime(path, (1, 1))
    born = float(run("stat", "-c", "%.9W", path).stdout)
    if born == 0:
        pytest.skip("this libfuse does not pass birth times on")
    assert before - 0.1 <= born <= time.time()


def test_times_before_1970_and_up_to_2446(pair: Pair) -> None:
    mount = pair.mount()
    path = mount / "a"
    path.write_text("x")
    utimensat(path, (-(1 << 31), 7), (YEAR_2446, 999_999_999))
    (mount / "late").write_text("x")
    utimensat(mount / "late", (-(1 << 40), 0), (1 << 40, 0))
    mount.unmount()
    mount = pair.mount()
    found = (mount / "a").stat()
    assert found.st_atime_ns == -(1 << 31) * 10**9 + 7
    assert found.st_mtime_ns == YEAR_2446 * 10**9 + 999_999_999
    late = (mount / "late").stat()
    assert (late.st_atime_ns // 10**9, late.st_mtime_ns // 10**9) == (-(1 << 31), YEAR_2446)


def test_each_time_is_set_to_now_or_left(mounted: Mount) -> None:
    path = mounted / "a"
    path.write_text("x")
    utimensat(path, (1, 5), (2, 6))
    utimensat(path, (0, UTIME_OMIT), (3, 7))
    assert (path.stat().st_atime_ns, path.stat().st_mtime_ns) == (1_000_000_005, 3_000_000_007)
    before = time.time() - 0.1
    utimensat(path, (0, UTIME_NOW), (0, UTIME_OMIT))
    assert before <= path.stat().st_atime <= time.time()
    assert path.stat().st_mtime_ns == 3_000_000_007
    path.chmod(0o644)
    refused = run(*NOBODY, "touch", "-c", "-d", "@1", "a", cwd=mounted.point, check=False)
    assert refused.returncode != 0, "only the owner may"
    changed = path.stat().st_ctime_ns
    time.sleep(0.02)
    utimensat(path, (0, UTIME_OMIT), (0, UTIME_OMIT))
    assert path.stat().st_ctime_ns == changed


def test_access_times_change_only_when_set(pair: Pair) -> None:
    mount = pair.mount()
    path = mount / "a"
    path.write_text("x")
    os.utime(path, (1, 2))
    path.read_text()
    run("cat", path)
    assert path.stat().st_atime == 1
    rows = [row.split() for row in Path("/proc/self/mounts").read_text().splitlines()]
    (options,) = [row[3].split(",") for row in rows if row[1] == str(mount.point)]
    assert "noatime" in options
    mount.unmount()
    assert (pair.mount() / "a").stat().st_atime == 1


# ---- What kernel FUSE refuses before the filesystem is asked


@pytest.mark.parametrize(
    "mode", [FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE]
)
def test_ranges_are_not_collapsed_inserted_or_unshared(mounted: Mount, mode: int) -> None:
    path = mounted / "a"
    path.write_bytes(b"x" * 16384)
    for offset, length in (0, 4096), (4096, 8192), (100, 5):
        expect_errno(errno.EOPNOTSUPP, fallocate, path, mode, offset, length)
    assert path.read_bytes() == b"x" * 16384
