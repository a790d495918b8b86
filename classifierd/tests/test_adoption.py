"""The daemon names a model only after the filesystem adopted its table."""

from __future__ import annotations

import logging

import pytest

from classifierd import _core, config
from classifierd.control import ControlClient
from classifierd.daemon import Session
from classifierd.records import from_bytes
from fake_filesystem import FakeFilesystem
from writes import logs_and_files


def write_some(fs: FakeFilesystem) -> None:
    """Telemetry of log tails."""
    raw, _ = logs_and_files(60_000, 1, 32_768)
    fs.ring.produce(from_bytes(_core.as_telemetry(raw)))


def looked_at(generation: int, adopted: int, refusal: str = "") -> dict[str, dict[str, object]]:
    """The status of a filesystem that looked at tables up to one, and uses one."""
    model: dict[str, object] = {"looked_at": generation, "generation": adopted, "kind": "old"}
    model |= {"refusal": refusal, "adopted": adopted > 0}
    return {"status": {"model": model}}


def session_with_a_table(client: ControlClient, candidates: tuple[str, ...]) -> Session:
    """A writer that published its first table."""
    attachment = client.attach()
    settings = config.Config(daemon=config.DaemonSettings(candidates=candidates))
    session = Session(client, attachment, settings, None)
    attachment.close()
    session.poll()
    session.end_epoch()
    return session


def test_the_log_names_a_model_only_once_the_filesystem_adopted_it(
    filesystem: FakeFilesystem, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    write_some(filesystem)
    filesystem.more = looked_at(0, 0)
    with ControlClient(filesystem.path) as client:
        session = session_with_a_table(client, ("life-table",))
        last = filesystem.model.active
        assert last > 0
        assert not session.report_adoption(), "nobody looked at it"
        assert "(life-table)" not in caplog.text
        filesystem.more = looked_at(last, last)
        assert session.report_adoption()
    assert f"model {last} (life-table) adopted: learned from " in caplog.text


def test_a_refused_table_is_named_with_the_reason_and_not_as_a_model(
    filesystem: FakeFilesystem, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    write_some(filesystem)
    with ControlClient(filesystem.path) as client:
        session = session_with_a_table(client, ("life-table",))
        last = filesystem.model.active
        filesystem.more = looked_at(last, last - 1, "wrong checksum")
        assert session.report_adoption()
    assert f"model {last} was refused by the filesystem: wrong checksum" in caplog.text
    assert "(life-table)" not in caplog.text
    assert "adopted:" not in caplog.text


def test_a_table_that_nobody_looks_at_is_waited_for_some_seconds_only(
    filesystem: FakeFilesystem, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("classifierd.daemon._LOOKED_SECONDS", 0.2)
    write_some(filesystem)
    filesystem.more = looked_at(0, 0)
    with ControlClient(filesystem.path) as client:
        session_with_a_table(client, ("life-table",)).await_adoption()
    assert f"model {filesystem.model.active}: the filesystem did not look at it" in caplog.text
