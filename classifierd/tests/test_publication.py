"""The published model places as the daemon means it to."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from classifierd import _core, publication
from classifierd.config import Config, DaemonSettings
from classifierd.contest import Device
from classifierd.knowledge import Identity, Knowledge
from classifierd.publication import by_table, publish
from classifierd.records import CHUNK_PAGES
from classifierd.traces import telemetry
from fake_filesystem import UUID, ModelArea
from writes import logs_and_files

LIVE = 8192


def taught() -> Knowledge:
    config = Config(daemon=DaemonSettings(candidates=("life-table",)))
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), config, None)
    raw, vstreams = logs_and_files(4 * LIVE, 1, LIVE)
    known.know(vstreams)
    records, at = telemetry(raw), 0
    while at < len(records):
        at += known.feed(records[at:])
        known.end_epoch()
    return known


def test_every_shape_reads_as_it_is_written(model: ModelArea) -> None:
    raw, _ = logs_and_files(4 * LIVE, 1, LIVE)
    records = telemetry(raw)
    assert len(np.unique(records["age"])) == _core.AGE_OLD + 1
    rows = 16
    own = np.arange(rows * _core.SHAPES) * 7919 % 251
    table = own.astype(np.uint8).reshape(rows, _core.SHAPES)
    row_of = (np.arange(_core.VSTREAMS) % rows).astype(np.uint16)
    chunks = (np.arange(20) % _core.CHUNK_CLASSES).astype(np.uint8)
    known = row_of, table.reshape(-1), chunks
    writer = _core.ModelWriter(model.fd)
    writer.prepare(table.reshape(-1), known, 251, 0)
    assert records["block"].max() > len(chunks) * CHUNK_PAGES
    assert (writer.place(records) == by_table(table, known, records)).all()


def test_a_table_that_would_be_misread_is_not_published(
    model: ModelArea, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    known, writer = taught(), _core.ModelWriter(model.fd)
    named = publish(writer, known, 0)
    assert writer.generation == 1
    table = model.checked_table(known.contest.pstreams)
    assert named == frozenset(np.unique(table).tolist()), "what the filesystem reads"
    real = publication.shapes_of
    monkeypatch.setattr(publication, "shapes_of", lambda *shape: real(*shape) // 2)
    assert publish(writer, known, 0) is None
    assert writer.generation == 1
    assert "placed otherwise than is meant" in caplog.text
