"""META's medium fails under a mount: each access behind the end of a file that was cut short."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

BLOCK = 4096
PROBLEMS_LEFT = 4


def write_synced(path: Path, content: bytes) -> None:
    """Make the file this content, durably."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def fill(mount: Mount, count: int = 200) -> list[Path]:
    """Files in the order of their inodes."""
    files = [mount / f"file-{i}" for i in range(count)]
    for file in files:
        write_synced(file, file.name.encode() * 100)
    return sorted(files, key=lambda file: file.stat().st_ino)


def unit(path: Path) -> int:
    """Return where the heap unit of a file's inode begins in META."""
    return path.stat().st_ino * 256 // BLOCK * BLOCK


def fill_up_to_inodes(mount: Mount) -> list[Path]:
    """Files until the last heap unit in use is one of inodes: the server's threads take their own.

    A folder's first name takes a unit too, the 39 after it do not.
    """
    files = fill(mount)
    last = max(map(unit, files))
    for number in range(20):
        folder = mount / f"folder-{number}"
        folder.mkdir()
        for file in (folder / f"file-{i}" for i in range(40)):
            write_synced(file, file.name.encode() * 100)
            files.append(file)
            if file.name != "file-0" and unit(file) > max(last, unit(folder)):
                return files
            last = max(last, unit(folder), unit(file))
    pytest.fail("no unit of inodes was taken last")


def test_lost_metadata_is_an_error_of_its_files_and_the_mount_reads_on(pair: Pair) -> None:
    mount = pair.mount()
    files = fill_up_to_inodes(mount)
    cut = unit(files[-1])
    lost = [file for file in files if unit(file) == cut]
    mount.unmount()
    size = pair.meta.stat().st_size
    mount = pair.mount()
    os.truncate(pair.meta, cut)
    for file in files:
        if file in lost:
            with pytest.raises(OSError, match=os.strerror(errno.EIO)):
                file.read_bytes()
        else:
            assert file.read_bytes() == file.name.encode() * 100
    with pytest.raises(OSError, match=rf"{os.strerror(errno.EIO)}|{os.strerror(errno.EROFS)}"):
        write_synced(mount / "new", b"x")
    with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
        (mount / "later").touch()
    status = mount.status()
    assert status["degraded_read_only"]
    assert f"pages of {pair.meta} are lost" in status["degraded_reason"]
    assert files[0].read_bytes() == files[0].name.encode() * 100
    mount.kill()
    os.truncate(pair.meta, size)  # zeroes, where inodes were
    done = pair.fsck("-n", "-f")
    assert done.returncode == PROBLEMS_LEFT, done.stdout + done.stderr


def test_one_of_two_copies_is_given_up_and_files_go_on(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair()
    second = pair.folder / "META2"
    pair.mkfs("--mirror", str(second))
    copies = (pair.meta, second)
    for failing in copies:
        mount = pair.mount(f"mirror={second}")
        files = fill(mount, 40)
        os.truncate(failing, 256 * 1024)
        assert [file.read_bytes() for file in files] == [file.name.encode() * 100 for file in files]
        write_synced(mount / "after", b"after")
        (mount / "another").mkdir()
        status = mount.status()
        assert status["mirror"] == "degraded"
        assert str(failing) in status["mirror_reason"]
        assert not status["degraded_read_only"]
        assert "DEGRADED" in run(BIN / "streamctl", "status", mount.point).stdout
        said = (pair.folder / "log").read_text()
        assert said.count(f"a copy is given up ({status['mirror_reason']})") == 1
        mount.kill()
        mount = pair.mount(f"mirror={second}")
        assert f"{failing} is made a copy of" in (pair.folder / "log").read_text()
        assert mount.status()["mirror"] == "in step"
        assert (mount / "after").read_bytes() == b"after"
        (mount / "after").unlink()
        (mount / "another").rmdir()
        mount.unmount()
        done = pair.fsck("-n", "-f", "--mirror", str(second))
        assert done.returncode == 0, done.stdout + done.stderr
