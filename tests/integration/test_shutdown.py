"""streamctl shutdown: every request fails with EIO, nothing is written, a remount recovers."""

import errno
import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run
from tests.integration.transport import allowing_io_uring

MIB = 1 << 20
RING = ("transport=io_uring",)
MODES = ("default", "logflush", "nologflush")
TIMERS_SECONDS = 2.5  # an epoch closes after 1 s, metadata is flushed after 0.9 s


@pytest.fixture
def files(make_pair: Callable[..., Pair]) -> Pair:
    """DATA and META in ordinary files, so that a test can see whether they change."""
    pair = make_pair()
    pair.image = pair.folder / "data"
    with pair.image.open("wb") as file:
        file.truncate(64 * MIB)
    pair.data = str(pair.image)
    return pair


def shut_down(mount: Mount, mode: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    return run(BIN / "streamctl", "shutdown", "--mode", mode, mount.point, check=check, timeout=30)


def digests(pair: Pair) -> list[str]:
    paths = (pair.image, pair.meta)
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def operations(mount: Mount, descriptor: int) -> dict[str, Callable[[], object]]:
    """An operation of every kind, most of them on content of the kernel's caches."""
    file, link = mount / "folder/file", mount / "folder/link"
    return {
        "stat": lambda: file.stat(),
        "lstat": lambda: link.lstat(),
        "readlink": lambda: link.readlink(),
        "statvfs": lambda: os.statvfs(mount.point),
        "list": lambda: list((mount / "folder").iterdir()),
        "list root": lambda: list(mount.point.iterdir()),
        "open": lambda: file.read_bytes(),
        "create": lambda: (mount / "folder/new").touch(),
        "mkdir": lambda: (mount / "new").mkdir(),
        "unlink": lambda: file.unlink(),
        "rename": lambda: file.rename(mount / "moved"),
        "link": lambda: os.link(file, mount / "linked"),
        "chmod": lambda: file.chmod(0o600),
        "getxattr": lambda: os.getxattr(file, "user.x"),
        "setxattr": lambda: os.setxattr(file, "user.y", b""),
        "truncate": lambda: os.truncate(file, 1),
        "fstat": lambda: os.fstat(descriptor),
        "read": lambda: os.pread(descriptor, 10, 0),
        "write": lambda: os.pwrite(descriptor, b"x", 0),
        "append": lambda: os.pwrite(descriptor, b"x" * 4096, 8192),
        "fsync": lambda: os.fsync(descriptor),
        "ftruncate": lambda: os.ftruncate(descriptor, 0),
        "fallocate": lambda: os.posix_fallocate(descriptor, 0, 1 << 20),
        "seek": lambda: os.lseek(descriptor, 0, os.SEEK_DATA),
    }


def assert_all_fail(mount: Mount, descriptor: int) -> None:
    for name, operation in operations(mount, descriptor).items():
        with pytest.raises(OSError) as raised:  # noqa: PT011
            operation()
        assert raised.value.errno == errno.EIO, name


def populate(mount: Mount) -> int:
    """Return a descriptor of a file that is durable; another file is not."""
    (mount / "folder").mkdir()
    (mount / "folder/link").symlink_to("file")
    descriptor = os.open(mount / "folder/file", os.O_RDWR | os.O_CREAT, 0o644)
    os.setxattr(mount / "folder/file", "user.x", b"value")
    os.write(descriptor, b"durable!" * 1024)
    os.fsync(descriptor)
    for name, operation in operations(mount, descriptor).items():
        if name in ("stat", "lstat", "readlink", "list", "list root", "open", "read", "getxattr"):
            operation()  # the kernel has it in its caches
    (mount / "loose").write_bytes(b"loose" * 1000)
    return descriptor


def mounted_with(files: Pair, options: tuple[str, ...]) -> Mount:
    with allowing_io_uring() if options == RING else nullcontext():
        return files.mount(*options)


@pytest.mark.parametrize(
    ("mode", "options"),
    [*((mode, ()) for mode in MODES), ("default", RING), ("nologflush", ("direct_io",))],
)
def test_all_fails_nothing_is_written_and_a_remount_recovers(
    files: Pair, mode: str, options: tuple[str, ...]
) -> None:
    files.mkfs()
    mount = mounted_with(files, options)
    descriptor = populate(mount)
    try:
        shut_down(mount, mode)
        written = digests(files)
        assert_all_fail(mount, descriptor)
        time.sleep(TIMERS_SECONDS)
        assert mount.process.poll() is None, "the daemon stays until the unmount"
    finally:
        with suppress(OSError):  # its writes since then are lost
            os.close(descriptor)
    mount.unmount()
    assert digests(files) == written, "something was written after the shutdown"
    assert "shut down" in mount.log.read_text()
    again = mounted_with(files, options)
    assert (again / "folder/file").read_bytes() == b"durable!" * 1024
    assert os.getxattr(again / "folder/file", "user.x") == b"value"
    if mode == "default":
        assert (again / "loose").read_bytes() == b"loose" * 1000
    (again / "writable").write_text("yes")
    again.unmount()
    files.assert_sound()


def test_a_second_shutdown_fails_and_sigterm_unmounts(files: Pair) -> None:
    files.mkfs()
    mount = files.mount()
    (mount / "file").write_text("x")
    shut_down(mount, "nologflush")
    assert shut_down(mount, "default", check=False).returncode != 0
    mount.process.terminate()
    assert mount.process.wait(30) == 0, mount.log.read_text()
    files.mount().unmount()
    files.assert_sound()


def test_a_mode_has_to_be_named(mounted: Mount) -> None:
    for words in ((), ("--mode", "gently")):
        done = run(BIN / "streamctl", "shutdown", *words, mounted.point, check=False)
        assert done.returncode == 64
    (mounted / "file").write_text("it is still mounted")


def test_a_stranger_may_not(mounted: Mount) -> None:
    mounted.point.chmod(0o755)
    done = run(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
        BIN / "streamctl", "shutdown", "--mode", "nologflush", mounted.point, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "root" in done.stderr, done.stderr
    (mounted / "file").write_text("it is still mounted")
