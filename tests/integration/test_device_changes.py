"""A data device that is not as it was, or not as one would have it.

Each is refused with a sentence, or used in a lesser way that status names.
"""

import errno
import fcntl
import os
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Pair, run, until
from tests.integration.simulated import holder_of, looped, served
from tests.integration.transport import TRANSPORTS, allowing_io_uring, refusing

MIB = 1 << 20
LOOP_SET_STATUS64, LOOP_GET_STATUS64 = 0x4C04, 0x4C05
LOOP_INFO_BYTES, SIZE_LIMIT_AT = 232, 32  # struct loop_info64


def limit(device: Path, size: int) -> None:
    """Let a loop device show so many bytes of its file; 0: all of them."""
    info = bytearray(LOOP_INFO_BYTES)
    with device.open("rb") as file:
        fcntl.ioctl(file, LOOP_GET_STATUS64, info)
        struct.pack_into("<Q", info, SIZE_LIMIT_AT, size)
        fcntl.ioctl(file, LOOP_SET_STATUS64, info)


def test_a_device_that_shrinks_under_its_mount_is_an_error_and_loses_nothing(
    make_pair: Callable[..., Pair],
) -> None:
    pair = make_pair(size="64M")
    disk = pair.folder / "disk"
    with disk.open("wb") as file:
        file.truncate(256 * MIB)
    with looped(disk) as device:
        pair.data = str(device)
        pair.mkfs()
        mount = pair.mount()
        content = os.urandom(8 * MIB)
        (mount / "kept").write_bytes(content)
        with (mount / "kept").open("rb") as file:
            os.fsync(file.fileno())
        limit(device, MIB)
        fd = os.open(mount / "new", os.O_CREAT | os.O_WRONLY)
        os.write(fd, content[: MIB // 4])  # kept by the kernel
        # The latter where the metadata log, which goes on by itself, met the device's end first.
        with pytest.raises(OSError, match=r"Input/output error|Read-only file system"):
            os.fsync(fd)
        os.close(fd)
        assert "beyond the end of the device" in mount.log.read_text()
        limit(device, 0)
        mount.end()
        mount = pair.mount()
        assert (mount / "kept").read_bytes() == content
        mount.unmount()
        pair.assert_sound()


def disk_of(pair: Pair, size: int = 256 * MIB) -> Path:
    """A file to put loop devices on."""
    disk = pair.folder / "disk"
    with disk.open("wb") as file:
        file.truncate(size)
    return disk


def mount_words(pair: Pair) -> list[str]:
    """The command that mounts, where it is to be refused."""
    return [str(BIN / "streamfs"), pair.data, str(pair.point), "-f", "-o", f"meta={pair.meta}"]


def test_a_device_smaller_than_formatted_is_refused_until_it_is_whole_again(
    make_pair: Callable[..., Pair],
) -> None:
    pair = make_pair(size="64M")
    with looped(disk_of(pair)) as device:
        pair.data = str(device)
        pair.mkfs()
        mount = pair.mount()
        (mount / "kept").write_bytes(b"kept")
        mount.unmount()
        limit(device, 100 * MIB)
        words = mount_words(pair)
        for done in (run(*words, check=False), pair.fsck("-n", "-f"), pair.fsck("-y")):
            assert done.returncode != 0
            assert "has shrunk to 25600 of 65536 blocks; restore it" in done.stderr
        limit(device, 0)
        assert (pair.mount() / "kept").read_bytes() == b"kept"


def test_a_read_only_device_is_named_as_such_and_can_be_read(
    make_pair: Callable[..., Pair],
) -> None:
    pair = make_pair(size="64M")
    disk = disk_of(pair)
    with looped(disk) as device:
        pair.data = str(device)
        pair.mkfs()
        mount = pair.mount()
        (mount / "kept").write_bytes(b"kept")
        mount.unmount()
    with looped(disk, "--read-only") as device:
        pair.data = str(device)
        mkfs = [str(BIN / "mkfs.streamfs"), "-f", "--meta", str(pair.meta), str(device)]
        for words in (mount_words(pair), mkfs):
            done = run(*words, check=False)
            assert done.returncode != 0
            assert "is a read-only device; mount it with -o ro" in done.stderr, done.stderr
            assert "root" not in done.stderr
        mount = pair.mount("ro")
        assert (mount / "kept").read_bytes() == b"kept"
        with pytest.raises(OSError, match="Read-only"):
            (mount / "kept").write_bytes(b"more")
        mount.unmount()
        pair.assert_sound()


@pytest.mark.parametrize("sector_bytes", [512, 4096])
def test_sectors_of_512_and_of_4096_bytes_work(
    make_pair: Callable[..., Pair], sector_bytes: int
) -> None:
    pair = make_pair(size="64M")
    with looped(disk_of(pair), "--sector-size", str(sector_bytes)) as device:
        pair.data = str(device)
        pair.mkfs()
        mount = pair.mount()
        content = os.urandom(3 * MIB + 777)
        (mount / "file").write_bytes(content)
        status = mount.status()
        assert status["device_transport"] == "io_uring"
        assert status["device_mechanism"] == "none"
        assert "write streams" in status["device_mechanism_reason"]
        assert f"one stream: {status['device_mechanism_reason']}" in shown_status(pair)
        mount.unmount()
        pair.assert_sound()
        assert (pair.mount() / "file").read_bytes() == content


def shown_status(pair: Pair) -> str:
    """The text that streamctl status prints for people."""
    return run(BIN / "streamctl", "status", pair.point).stdout


def test_without_io_uring_system_calls_serve_and_status_says_why(
    make_pair: Callable[..., Pair],
) -> None:
    """Also where the kernel would talk to FUSE servers over it."""
    pair = make_pair(size="64M")
    with looped(disk_of(pair)) as device:
        pair.data = str(device)
        pair.mkfs()
        with allowing_io_uring():
            mount = pair.mount(before=refusing())
        content = os.urandom(3 * MIB + 777)
        (mount / "file").write_bytes(content)
        status = mount.status()
        assert status["device_transport"] == (
            "system calls: a sandbox refuses io_uring: Operation not permitted"
        )
        assert status["kernel_transport"] == "/dev/fuse"
        assert "a sandbox refuses io_uring" in status["kernel_transport_reason"]
        assert "system calls: a sandbox refuses io_uring" in shown_status(pair)
        mount.unmount()
        pair.assert_sound()
        assert (pair.mount() / "file").read_bytes() == content


PATIENCE_SECONDS = 2
SAVE = 'head -c 1000000 /dev/urandom >"$0/new" && sync "$0/new"'
LOOK = 'cat "$0/kept" >/dev/null; stat "$0/other"'


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.usefixtures("io_uring_allowed")
def test_a_device_that_never_answers_ends_the_mount_and_loses_nothing(
    make_pair: Callable[..., Pair], transport: str
) -> None:
    """A loop device, for which the kernel has no time limit of its own."""
    pair = make_pair(size="256M")
    with served(pair.image) as file, looped(file) as device:
        pair.data = str(device)
        pair.mkfs()
        mount = pair.mount(f"request_timeout={PATIENCE_SECONDS}", *TRANSPORTS[transport])
        content = os.urandom(3 * MIB)
        (mount / "kept").write_bytes(content)
        with (mount / "kept").open("rb") as kept:
            os.fsync(kept.fileno())
        server = holder_of(pair.image)
        os.kill(server, signal.SIGSTOP)
        try:
            began = time.monotonic()
            done = run("sh", "-c", SAVE, mount.point, check=False, timeout=90)
            assert done.returncode != 0
            assert PATIENCE_SECONDS < time.monotonic() - began < 3 * PATIENCE_SECONDS
            done = run("sh", "-c", LOOK, mount.point, check=False, timeout=10)
            assert done.returncode != 0, "of a mount that is over"
            said = mount.log.read_text()
            assert "does the data device answer?" in said
            assert f"no answer for {PATIENCE_SECONDS} s" in said
        finally:
            os.kill(server, signal.SIGCONT)
        mount.end()
        mount = pair.mount()
        assert (mount / "kept").read_bytes() == content
        mount.unmount()
        pair.assert_sound()


def test_data_truncated_while_mounted_is_seen_at_the_next_write_and_stays_short(
    make_pair: Callable[..., Pair],
) -> None:
    pair = make_pair()
    disk = disk_of(pair)
    pair.data = str(disk)
    pair.mkfs()
    mount = pair.mount()
    (mount / "before").write_text("synced")
    run(BIN / "streamctl", "sync", mount.point)
    os.truncate(disk, 64 * MIB)
    with pytest.raises(OSError) as raised, (mount / "after").open("wb") as file:  # noqa: PT011, PT012
        file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())
    assert raised.value.errno in (errno.EIO, errno.EROFS)
    until(lambda: bool(mount.status()["degraded_read_only"]), 30, "the mount to be read-only")
    with pytest.raises(OSError, match="Read-only"):
        (mount / "more").touch()
    assert f"{disk} was truncated while in use" in mount.log.read_text()
    assert disk.stat().st_size == 64 * MIB
    mount.end()
    assert disk.stat().st_size == 64 * MIB
