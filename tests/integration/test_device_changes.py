"""A data device that is not what it was: smaller under its mount, and as before again."""

import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import Pair
from tests.integration.simulated import looped

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


def test_a_device_that_shrinks_under_its_mount_is_eio_and_loses_nothing(
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
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(fd)
        os.close(fd)
        assert "beyond the end of the device" in mount.log.read_text()
        limit(device, 0)
        mount.end()
        mount = pair.mount()
        assert (mount / "kept").read_bytes() == content
        mount.unmount()
        pair.assert_sound()
