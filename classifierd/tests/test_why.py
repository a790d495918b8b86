"""Explaining a block: what the filesystem says of it, in words and as values."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from classifierd.cli import main
from classifierd.control import ControlClient, ControlError
from classifierd.why import as_json, lines, why_block
from fake_filesystem import FakeFilesystem, ModelArea, Ring


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[FakeFilesystem]:
    ring, model = Ring(), ModelArea()
    fake = FakeFilesystem(tmp_path / "socket", ring, model)
    fake.streams = [
        {"vstream": 9, "source": "hint", "name": "wal", "lifetime_bytes": 8 << 20, "pstream": 3}
    ]
    fake.more = {
        "status": {"uuid": "", "pstreams": 8},
        "block": {"known": True, "vstream": 9, "pstream": 3, "age_bytes": 1 << 20},
    }
    yield fake
    fake.close()


def test_a_block_is_explained_by_what_wrote_it(fs: FakeFilesystem) -> None:
    with ControlClient(fs.path) as client:
        found = why_block(client, 77, None)
    assert (found.vstream, found.label, found.pstream) == (9, "wal", 3)
    assert found.lifetime_bytes == 8 << 20
    assert as_json(found)["block"] == {"number": 77, "known": True, "age_bytes": 1 << 20}
    said = "\n".join(lines(found))
    assert "block 77, written 1 MiB of writes ago: vStream 9, by hint: wal" in said
    assert "8 MiB of writes" in said


def test_a_block_nobody_knows_is_said_to_be_unknown(fs: FakeFilesystem) -> None:
    fs.more["block"] = {"known": False}
    with ControlClient(fs.path) as client:
        found = why_block(client, 5, None)
    assert list(lines(found)) == ["block 5: not written since the mount, or it does not live"]


def test_a_block_beyond_the_device_is_an_error_of_its_own(fs: FakeFilesystem) -> None:
    beyond = "block 5 is beyond DATA, which has 4"
    fs.more["block"] = {"ok": False, "errno": errno.ERANGE, "error": beyond}
    with ControlClient(fs.path) as client, pytest.raises(ControlError, match=beyond) as caught:
        why_block(client, 5, None)
    assert caught.value.errno == errno.ERANGE


def test_a_number_is_a_block_and_needs_a_streamfs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["explain", "12", "--mount", str(tmp_path)]) != 0
    assert "no streamfs is mounted there" in caplog.text
