"""File handles (name_to_handle_at(2)) lead to their file as long as it lives, and no further."""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.pairs import Mount, Pair, run

HANDLE_BYTES = 128  # MAX_HANDLE_SZ
INO64_GEN = 0x81  # a FUSE handle: the inode's number, its upper half first, and its generation
AT_FDCWD = -100
PER_FOLDER = 500

_libc = ctypes.CDLL(None, use_errno=True)


class Handle(ctypes.Structure):
    """struct file_handle."""

    _fields_ = (
        ("bytes", ctypes.c_uint),
        ("type", ctypes.c_int),
        ("data", ctypes.c_ubyte * HANDLE_BYTES),
    )


def checked(result: int) -> int:
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def handle_of(path: Path) -> Handle:
    handle, mount = Handle(bytes=HANDLE_BYTES), ctypes.c_int()
    found = _libc.name_to_handle_at(
        AT_FDCWD, bytes(path), ctypes.byref(handle), ctypes.byref(mount), 0
    )
    checked(found)
    return handle


def made_up(number: int, generation: int) -> Handle:
    handle = Handle(bytes=12, type=INO64_GEN)
    ctypes.memmove(
        handle.data, struct.pack("=3I", number >> 32, number & 0xFFFFFFFF, generation), 12
    )
    return handle


@contextmanager
def opened(mount: Mount, handles: list[Handle], flags: int = os.O_RDONLY) -> Iterator[list[int]]:
    root = os.open(mount.point, os.O_RDONLY)
    fds = [root]
    try:
        for handle in handles:
            fds.append(checked(_libc.open_by_handle_at(root, ctypes.byref(handle), flags)))
        yield fds[1:]
    finally:
        for fd in fds:
            os.close(fd)


def numbers(mount: Mount, handles: list[Handle]) -> list[int]:
    """The numbers of the inodes that the handles lead to; a few are open at a time."""
    found: list[int] = []
    for first in range(0, len(handles), PER_FOLDER):
        with opened(mount, handles[first : first + PER_FOLDER]) as fds:
            found += [os.fstat(fd).st_ino for fd in fds]
    return found


def remount(pair: Pair, mount: Mount) -> Mount:
    mount.unmount()
    return pair.mount()


def kill(pair: Pair, mount: Mount) -> Mount:
    mount.kill()
    return pair.mount()


def drop_caches(_: Pair, mount: Mount) -> Mount:
    Path("/proc/sys/vm/drop_caches").write_text("2\n")
    return mount


FORGETS: dict[str, Callable[[Pair, Mount], Mount]] = {
    "remount": remount,
    "kill": kill,
    "drop_caches": drop_caches,
}


def make_files(mount: Mount, count: int) -> list[Path]:
    paths = []
    for first in range(0, count, PER_FOLDER):
        folder = mount / f"{first}"
        folder.mkdir()
        paths.append(folder)
        for number in range(first + 1, first + PER_FOLDER):
            paths.append(folder / f"{number}")
            os.close(os.open(paths[-1], os.O_CREAT | os.O_WRONLY))
    return paths


@pytest.mark.parametrize(
    "count", [pytest.param(2_000, id="few"), pytest.param(100_000, marks=pytest.mark.long)]
)
def test_handles_outlive_what_the_kernel_and_the_daemon_remember(
    make_pair: Callable[..., Pair], count: int
) -> None:
    pair = make_pair()
    pair.mkfs("--mean-file-size", "8K")
    mount = pair.mount()
    paths = make_files(mount, count)
    handles = [handle_of(path) for path in paths]
    wanted = [path.stat().st_ino for path in paths]
    assert len(set(wanted)) == count
    for forget in FORGETS.values():
        mount = forget(pair, mount)
        assert numbers(mount, handles) == wanted
    mount.unmount()
    pair.assert_sound()


def test_a_handle_leads_to_the_content(pair: Pair) -> None:
    mount = pair.mount()
    path = mount / "a"
    path.write_text("content")
    path.rename(mount / "b")
    run("sync", mount / "b")  # fsync
    handle = handle_of(mount / "b")
    for wanted, forget in enumerate(FORGETS.values()):
        mount = forget(pair, mount)
        with opened(mount, [handle], os.O_RDWR) as (fd,):
            assert os.read(fd, 100) == b"content" + b"!" * wanted
            os.write(fd, b"!")
            os.fsync(fd)


def test_a_handle_of_a_directory_leads_to_its_path(pair: Pair) -> None:
    mount = pair.mount()
    (mount / "a/b/c").mkdir(parents=True)
    (mount / "a/b/c/file").touch()
    (mount / "d").mkdir()
    handle = handle_of(mount / "a/b/c")
    (mount / "a/b").rename(mount / "d/e")
    for forget in FORGETS.values():
        mount = forget(pair, mount)
        with opened(mount, [handle], os.O_RDONLY | os.O_DIRECTORY) as (fd,):
            found = Path(f"/proc/self/fd/{fd}")
            assert [path.name for path in found.iterdir()] == ["file"]
            assert found.readlink() == mount / "d/e/c"


def test_a_handle_of_another_type_leads_to_it(pair: Pair) -> None:
    mount = pair.mount()
    (mount / "link").symlink_to("x" * 3000)
    os.mkfifo(mount / "fifo")
    handles = [handle_of(mount / "link"), handle_of(mount / "fifo")]
    mount = remount(pair, mount)
    with opened(mount, handles, os.O_PATH) as fds:
        kinds = [stat.S_IFMT(os.fstat(fd).st_mode) for fd in fds]
    assert kinds == [stat.S_IFLNK, stat.S_IFIFO]


def expect_stale(mount: Mount, handle: Handle) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)), opened(mount, [handle]):
        pass


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_handle_of_what_was_deleted_is_stale_also_when_its_number_is_used_again(
    pair: Pair, kind: str
) -> None:
    mount = pair.mount()
    path = mount / "gone"
    path.touch() if kind == "file" else path.mkdir()
    handle, number = handle_of(path), path.stat().st_ino
    path.unlink() if kind == "file" else path.rmdir()
    for forget in FORGETS.values():
        expect_stale(mount, handle)
        mount = forget(pair, mount)
    expect_stale(mount, handle)
    mount = remount(pair, mount)
    used = set()
    for attempt in range(1000):
        (mount / f"{attempt}").touch()
        used.add((mount / f"{attempt}").stat().st_ino)
        if number in used:
            break
    assert number in used
    expect_stale(mount, handle)
    expect_stale(remount(pair, mount), handle)


def test_a_handle_of_a_deleted_file_works_while_the_file_is_open(mounted: Mount) -> None:
    with (mounted / "a").open("w+") as file:
        file.write("content")
        file.flush()
        handle = handle_of(mounted / "a")
        (mounted / "a").unlink()
        Path("/proc/sys/vm/drop_caches").write_text("2\n")
        with opened(mounted, [handle]) as (fd,):
            assert os.read(fd, 100) == b"content"
    expect_stale(mounted, handle)


def test_made_up_handles_are_stale(mounted: Mount) -> None:
    (mounted / "a").touch()
    real = (mounted / "a").stat().st_ino
    Path("/proc/sys/vm/drop_caches").write_text("2\n")
    for number in (2, real - 1, real + 1, 1 << 40, (1 << 57) + real, (1 << 64) - 1):
        expect_stale(mounted, made_up(number, 1))
    expect_stale(mounted, made_up(real, 0))
    assert mounted.process.poll() is None
