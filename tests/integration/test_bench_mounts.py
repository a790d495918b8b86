"""bench/meta measures every operation on each of its FUSE servers and leaves nothing behind."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.mounts import MOUNTERS
from bench.suites.meta import once

OPERATIONS = 10


@pytest.mark.parametrize("name", ["streamfs", "limit_fs"])
def test_every_operation_is_measured_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        mounted = MOUNTERS[name](stack, tmp_path, 256 << 20)
        found = once(mounted, 50)
        assert list(mounted.point.iterdir()) == []
        assert mounted.server is not None
    assert len(found) == 2 * OPERATIONS  # a free thread's and a bound one's
    for each in found.values():
        assert each["per_second"] > 0
        assert each["server_us"] >= 0
    assert found["create"]["server_us"] > 0
    assert not (tmp_path / name).is_mount()


def test_limit_fs_keeps_names_and_sizes_and_no_contents(tmp_path: Path) -> None:
    with ExitStack() as stack:
        point = MOUNTERS["limit_fs"](stack, tmp_path, 0).point
        (point / "folder").mkdir()
        (point / "folder" / "file").write_bytes(b"x" * 5000)
        (point / "folder" / "file").rename(point / "moved")
        assert (point / "moved").stat().st_size == 5000
        with (point / "moved").open("r+b") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert file.read() == bytes(5000)
        assert [each.name for each in point.iterdir()] == ["folder", "moved"]
        (point / "folder").rmdir()
        (point / "moved").unlink()
        assert list(point.iterdir()) == []
