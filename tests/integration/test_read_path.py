"""Reading on mounts: what the kernel is told for sequential readers, and data that is damaged."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import Mount, Pair

READ_AHEAD_KIB = 2048
BACKGROUND, CONGESTED = 128, 96
BLOCK = 4096


def test_the_kernel_reads_far_ahead_and_much_at_once(mounted: Mount, connections: Path) -> None:
    device = mounted.point.stat().st_dev
    bdi = Path("/sys/class/bdi") / f"{os.major(device)}:{os.minor(device)}"
    assert int((bdi / "read_ahead_kb").read_text()) == READ_AHEAD_KIB
    connection = connections / str(os.minor(device))
    assert int((connection / "max_background").read_text()) == BACKGROUND
    assert int((connection / "congestion_threshold").read_text()) == CONGESTED


def test_a_damaged_block_is_eio_told_and_counted(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(size="64M")
    data = pair.folder / "data"
    with data.open("wb") as file:
        file.truncate(256 << 20)
    pair.data = str(data)
    pair.mkfs()
    content = os.urandom(16 * BLOCK)
    mount = pair.mount()
    (mount / "a").write_bytes(content)
    (mount / "b").write_bytes(content[::-1])
    mount.unmount()
    with data.open("r+b") as file:
        place = file.read().index(content[5 * BLOCK : 6 * BLOCK])
        file.seek(place + 100)
        file.write(b"damage")
    mount = pair.mount()
    fd = os.open(mount / "a", os.O_RDONLY | os.O_DIRECT)
    memory = memoryview(bytearray(2 * BLOCK))
    with pytest.raises(OSError, match="Input/output error") as told:
        os.preadv(fd, [memory[:BLOCK]], 5 * BLOCK)
    assert told.value.errno == errno.EIO
    assert os.preadv(fd, [memory], 6 * BLOCK) == 2 * BLOCK
    assert bytes(memory) == content[6 * BLOCK : 8 * BLOCK]
    os.close(fd)
    assert (mount / "b").read_bytes() == content[::-1]
    assert mount.status()["checksum_errors"] == 1
    assert "checksum" in mount.log.read_text()
