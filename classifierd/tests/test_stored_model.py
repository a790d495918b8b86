"""The model that the daemon stores for a mount without one."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from classifierd import _core, config, state
from classifierd.adoption import Offer, settled
from classifierd.contexts import VStream, parse_streams, uses_of
from classifierd.control import ControlClient
from classifierd.daemon import Session
from classifierd.knowledge import Knowledge
from classifierd.records import from_bytes
from fake_filesystem import UUID, FakeFilesystem
from writes import logs_and_files

HEADER, USES_BYTES = 40, 2 * _core.VSTREAMS


def session_of(client: ControlClient, state_dir: Path) -> Session:
    """A session whose life table serves from the start."""
    attachment = client.attach()
    settings = config.Config(daemon=config.DaemonSettings(candidates=("life-table",)))
    session = Session(client, attachment, settings, state_dir)
    attachment.close()
    session.start()
    return session


def write_logs(fs: FakeFilesystem) -> None:
    """Telemetry of log tails; vStream n is the use n + 3 of its number."""
    raw, vstreams = logs_and_files(60_000, 1, 32_768)
    fs.streams = [{"vstream": v.number, "generation": v.number + 3} for v in vstreams]
    fs.ring.produce(from_bytes(_core.as_telemetry(raw)))


def test_the_published_model_is_stored_with_the_state(
    filesystem: FakeFilesystem, tmp_path: Path
) -> None:
    write_logs(filesystem)
    path = state.model_path_of(tmp_path, UUID)
    with ControlClient(filesystem.path) as client:
        session = session_of(client, tmp_path)
        session.save()
        assert not path.exists(), "nothing is published"
        session.poll()
        session.end_epoch()
        assert not path.exists(), "no more often than the state"
        session.save()
        written = path.stat()
        session.save()
        assert path.stat().st_ino == written.st_ino, "the same model is not written again"
    assert written.st_mode & 0o777 == 0o600
    stored = path.read_bytes()
    magic, checksum, _, version, size, uuid = struct.unpack_from("<8sIIII16s", stored)
    assert magic == b"SFSMDF01"
    assert checksum == _core.crc32c(stored[12:])
    assert (version, size, uuid) == (_core.MODEL_VERSION, _core.MODEL_BUFFER_BYTES, UUID)
    uses = np.frombuffer(stored[HEADER : HEADER + USES_BYTES], np.uint16)
    known = [(row["vstream"], row["generation"]) for row in filesystem.streams]
    assert [(v, uses[v] - 1) for v in np.flatnonzero(uses)] == sorted(known)
    at = 64 + filesystem.model.active % 2 * size
    assert stored[HEADER + USES_BYTES :] == filesystem.model.map[at : at + size]


def test_what_a_crowded_device_gets_is_not_stored(
    filesystem: FakeFilesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_logs(filesystem)
    path = state.model_path_of(tmp_path, UUID)
    with ControlClient(filesystem.path) as client:
        session = session_of(client, tmp_path)
        session.poll()
        session.end_epoch()
        session.save()
        before = path.read_bytes()
        monkeypatch.setattr(Knowledge, "fill", lambda knowledge, _: crowd(knowledge))
        session.end_epoch()
        session.save()
    assert filesystem.model.kind() == "nosep"
    assert path.read_bytes() == before


def crowd(knowledge: Knowledge) -> None:
    """Say that the device is too full for more than one stream."""
    knowledge.crowded = True


def test_a_state_directory_that_takes_no_file_costs_a_line(
    filesystem: FakeFilesystem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_logs(filesystem)
    (tmp_path / f"{UUID.hex()}.model").mkdir()
    with ControlClient(filesystem.path) as client:
        session = session_of(client, tmp_path)
        session.poll()
        session.end_epoch()
        session.save()
    assert "model not saved: " in caplog.text
    assert state.path_of(tmp_path, UUID).exists()


def test_only_a_published_model_is_stored(filesystem: FakeFilesystem) -> None:
    writer = _core.ModelWriter(filesystem.model.fd)
    uses = np.zeros(_core.VSTREAMS, np.uint16)
    with pytest.raises(RuntimeError, match="not published"):
        writer.stored(uses)
    row = np.zeros(_core.SHAPES, np.uint8)
    known = uses, row, np.zeros(1, np.uint8)
    writer.prepare(row, known, 8, 0)
    with pytest.raises(RuntimeError, match="not published"):
        writer.stored(uses)
    writer.publish()
    with pytest.raises(ValueError, match="wrong size"):
        writer.stored(uses[:-1])
    assert len(writer.stored(uses)) == HEADER + USES_BYTES + _core.MODEL_BUFFER_BYTES


def test_what_is_no_generation_is_not_known() -> None:
    rows = [{"vstream": v, "generation": g} for v, g in enumerate((0, 255, 256, -1, "x", None))]
    uses = uses_of([*parse_streams(rows), VStream(9)])
    assert uses[:10].tolist() == [1, 256, 0, 0, 0, 0, 0, 0, 0, 0]


def test_a_stored_model_of_the_same_generation_is_not_the_offered_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused = {"looked_at": 3, "generation": 3, "stored": True, "refusal": "wrong checksum"}
    offer = Offer(3, "life-table", "nothing")
    assert settled(offer, {"model": {"looked_at": 0, "generation": 3, "stored": True}}) is False
    assert settled(offer, {"model": refused})
    assert "model 3 was refused by the filesystem: wrong checksum" in caplog.text
