"""The checker of the power cuts sees each kind of loss, and takes what a cut may leave."""

import os
from pathlib import Path

import pytest
from tests.powercut.promises import Promises
from tests.powercut.workload import SLOT_BYTES, slot

NOTES = """create a 1
names
write 1 0 2 1
sync 1
write 1 1 1 2
link b 1
names
create c 2
rename c a
"""


def content(*versions: int) -> bytes:
    return b"".join(slot(1, place, version) for place, version in enumerate(versions))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with all that the notes promise, and nothing else."""
    (tmp_path / "a").write_bytes(content(1, 1))
    os.link(tmp_path / "a", tmp_path / "b")
    return tmp_path


def faults(root: Path) -> list[str]:
    return Promises(NOTES).faults(root)


def test_what_is_promised_and_no_more_is_right(root: Path) -> None:
    assert Promises(NOTES).kept == 3
    assert faults(root) == []


def test_what_was_under_way_may_be_there(root: Path) -> None:
    (root / "a").write_bytes(content(1, 2))
    (root / "c").touch()
    assert faults(root) == []
    (root / "c").rename(root / "a")
    assert faults(root) == []


def test_a_line_without_an_end_promises_nothing(root: Path) -> None:
    assert Promises(NOTES + "write 1 0 1 9\nsync 1").faults(root) == []


@pytest.mark.parametrize("versions", [(0, 1), (1, 0), (1, 3), (2, 1)])
def test_a_slot_that_holds_another_version_is_seen(root: Path, versions: tuple[int, int]) -> None:
    (root / "a").write_bytes(content(*versions))
    assert len(faults(root)) == 1


def test_a_torn_slot_and_a_short_file_are_seen(root: Path) -> None:
    whole = content(1, 1)
    (root / "a").write_bytes(whole[:100] + bytes(SLOT_BYTES - 100) + whole[SLOT_BYTES:])
    assert len(faults(root)) == 1
    (root / "a").write_bytes(whole[:SLOT_BYTES])
    assert len(faults(root)) == 1


def test_names_that_are_lost_or_came_back_are_seen(root: Path) -> None:
    settled = Promises(NOTES.partition("create c")[0])
    assert settled.faults(root) == []
    (root / "b").unlink()
    assert settled.faults(root)
    (root / "b").write_bytes(content(1, 1))
    assert settled.faults(root), "b is another file than a"
    (root / "d").touch()
    assert settled.faults(root)


def test_an_fsync_after_an_error_proves_nothing(tmp_path: Path) -> None:
    notes = "create a 1\nnames\nwrite 1 0 1 1\nunsure 1\nsync 1\n"
    (tmp_path / "a").write_bytes(b"")
    assert Promises(notes).faults(tmp_path) == []
