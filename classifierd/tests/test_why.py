"""Explaining a block and a mount: what the filesystem says of it, in words and as values."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE
from classifierd.config import Config
from classifierd.contest import Device
from classifierd.control import ControlClient, ControlError
from classifierd.knowledge import Identity, Knowledge
from classifierd.records import CHUNK_PAGES
from classifierd.traces import telemetry
from classifierd.why import as_json, lines, why_block
from fake_filesystem import UUID, FakeFilesystem, ModelArea, Ring
from writes import logs_and_files


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


def test_the_class_of_a_blocks_chunk_is_told(fs: FakeFilesystem, tmp_path: Path) -> None:
    known = Knowledge(Identity(UUID, 1 << 14), Device(1 << 13, 8), Config(), tmp_path)
    raw, vstreams = logs_and_files(1 << 16, 1, 1 << 13)
    records, at = telemetry(raw), 0
    known.know(vstreams)
    while at < len(records):
        at += known.feed(records[at:])
        known.end_epoch()
    assert known.contest.serve("nosep")
    known.save()
    fs.more["status"]["uuid"] = UUID.hex()
    fs.streams = []
    chunk, cls = next((c, int(k)) for c, k in enumerate(known.contest.chunks.map_) if k > 0)
    with ControlClient(fs.path) as client:
        inside = why_block(client, chunk * CHUNK_PAGES + 5, tmp_path)
        beyond = why_block(client, (len(known.contest.chunks.map_) + 9) * CHUNK_PAGES, tmp_path)
    assert inside.chunk is not None
    assert inside.chunk.identity == cls
    assert inside.chunk.chunks == (known.contest.chunks.map_ == cls).sum()
    assert f"its chunks, class {cls}: {inside.chunk.chunks} chunks, overw" in "".join(lines(inside))
    assert beyond.chunk is None


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


@pytest.fixture
def mounted(fs: FakeFilesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mount point that the fake filesystem answers for."""
    monkeypatch.setattr("classifierd.control.os.getxattr", lambda *_: bytes(fs.path))
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path)
    return tmp_path


def test_a_mount_is_explained_by_its_table_and_its_largest_vstreams(
    fs: FakeFilesystem, mounted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fs.more["status"] |= {
        "placement": "auto",
        "model": {"adopted": True, "generation": 7, "kind": "nosep", "refused": 2},
    }
    fs.streams += [
        {"vstream": n, "source": "context", "ext": f"e{n}", "written_bytes": n << 20}
        for n in range(100, 130)
    ]
    assert main(["explain", str(mounted)]) == 0
    said = capsys.readouterr().out
    assert f"{mounted}: placement auto on 8 pStreams" in said
    assert "model 7 (nosep) of the daemon decides" in said
    assert "refused models: 2" in said
    assert "vStream 129, by context: /*.e129 → pStream 0; lifetime unknown, 129 MiB" in said
    assert "vStream 109," not in said
    assert "11 smaller vStreams are not listed" in said
    assert main(["explain", str(mounted), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["table"], told["vstreams_known"]) == (1, 7, 31)
    assert [row["vstream"] for row in told["vstreams"]] == list(range(129, 109, -1))


@pytest.mark.usefixtures("mounted")
def test_without_a_table_a_mount_is_placed_by_hints_and_measured_lifetimes(
    fs: FakeFilesystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fs.more["status"]["model"] = {"adopted": False, "generation": 0, "refused": 0}
    assert main(["explain", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "no model of classifierd is in use" in said
    assert "vStream 9, by hint: wal → pStream 3; lifetime 8 MiB" in said
    assert "refused" not in said


def test_a_mount_of_another_filesystem_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert main(["explain", "/proc"]) == EXIT_NO_DEVICE
    assert "/proc: no streamfs is mounted there" in caplog.text


def test_a_mount_point_can_be_plotted(fs: FakeFilesystem, mounted: Path) -> None:
    limits = {"lifetime_low_bytes": 1 << 20, "lifetime_high_bytes": 16 << 20}
    fs.streams[0] |= limits
    assert main(["plot", str(mounted), "-o", str(mounted / "a.svg")]) == 0
    assert b"9 wal" in (mounted / "a.svg").read_bytes()
