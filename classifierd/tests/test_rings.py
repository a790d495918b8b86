"""Reading the telemetry rings: lossy, counted, and never believed."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest

from classifierd import _core
from classifierd.records import RECORD, Records, from_bytes, make
from fake_filesystem import UUID, ModelArea, Ring


def numbered(first: int, count: int) -> Records:
    records = make(np.arange(first, first + count) % 1000, 1)
    records["clock_pages"] = np.arange(first, first + count)
    return records


@pytest.fixture
def small() -> Ring:
    return Ring(capacity=256)


def test_records_come_out_as_they_went_in(small: Ring) -> None:
    reader = _core.TelemetryReader(small.fd)
    small.produce(numbered(0, 100))
    assert (from_bytes(reader.read(1000)) == numbered(0, 100)).all()
    assert len(reader.read(1000)) == 0
    assert (reader.lost, reader.rejected, reader.uuid) == (0, 0, UUID)
    small.close()


def test_a_reader_too_slow_counts_what_it_lost(small: Ring) -> None:
    reader = _core.TelemetryReader(small.fd)
    small.produce(numbered(0, 100))
    reader.read(1000)
    small.produce(numbered(100, 1000))
    got = from_bytes(reader.read(10_000))
    assert len(got) + reader.lost == 1000
    # A slot may be half written at any time, so one less than the capacity is safe.
    assert (got == numbered(1100 - 255, 255)).all()
    small.close()


def test_rings_are_merged_by_clock() -> None:
    ring = Ring(capacity=256, rings=3)
    reader = _core.TelemetryReader(ring.fd)
    for i in range(3):
        ring.produce(numbered(0, 90)[i::3], ring=i)
    assert (from_bytes(reader.read(1000))["clock_pages"] == np.arange(90)).all()
    ring.close()


def test_garbage_in_the_ring_is_rejected(small: Ring) -> None:
    reader = _core.TelemetryReader(small.fd)
    rng = np.random.default_rng(1)
    small.produce(from_bytes(rng.integers(0, 256, 200 * RECORD.itemsize, dtype=np.uint8)))
    small.produce(numbered(0, 10))
    assert (from_bytes(reader.read(1000)) == numbered(0, 10)).all()
    assert reader.rejected == 200
    small.close()


def test_any_head_is_survived(small: Ring) -> None:
    reader = _core.TelemetryReader(small.fd)
    rng = np.random.default_rng(2)
    for head in [(1 << 64) - 1, 0, 1 << 63, *rng.integers(0, 1 << 62, 200).tolist(), 3]:
        small.set_head(head)
        assert len(reader.read(1000)) <= 256 * RECORD.itemsize
    small.close()


@pytest.mark.parametrize(
    ("offset", "layout", "value"),
    [
        (0, "<Q", 1),  # magic
        (8, "<I", 99),  # version
        (12, "<I", 48),  # record size
        (16, "<I", 0),  # no rings
        (16, "<I", 1 << 31),  # more than there is memory
        (20, "<I", 255),  # not a power of two
        (20, "<I", 1 << 20),  # beyond the end
        (24, "<Q", (1 << 64) - 1),  # a device of absurd size
    ],
)
def test_a_header_that_cannot_be_is_refused(
    small: Ring, offset: int, layout: str, value: int
) -> None:
    struct.pack_into(layout, small.map, offset, value)
    with pytest.raises(RuntimeError, match="telemetry"):
        _core.TelemetryReader(small.fd)
    small.close()


def test_memory_too_small_is_refused() -> None:
    fd = os.memfd_create("stub")
    for size in (0, 10, 64):
        os.ftruncate(fd, size)
        with pytest.raises(RuntimeError, match=r"memory|telemetry"):
            _core.TelemetryReader(fd)
        with pytest.raises(RuntimeError, match="memory"):
            _core.ModelWriter(fd)
    os.close(fd)


def test_a_published_table_passes_the_readers_checks(model: ModelArea) -> None:
    writer = _core.ModelWriter(model.fd)
    rng = np.random.default_rng(3)
    for generation in (1, 2, 3):
        row_of = rng.integers(0, 3, _core.VSTREAMS).astype(np.uint16)
        entries = rng.integers(0, 5, 3 * _core.SHAPES).astype(np.uint8)
        chunks = rng.integers(0, _core.CHUNK_CLASSES, 7).astype(np.uint8)
        writer.prepare(entries, (row_of, entries, chunks), 5, 77)
        assert model.active == generation - 1
        assert writer.publish() == generation
        rows = entries.reshape(3, _core.SHAPES)
        assert (model.checked_table(8) == rows[row_of]).all()
        assert model.clock_pages() == 77


def test_a_table_naming_a_missing_pstream_is_never_published(model: ModelArea) -> None:
    writer = _core.ModelWriter(model.fd)
    entries = np.zeros(2 * _core.SHAPES, np.uint8)
    entries[-1] = 4
    row_of = np.ones(_core.VSTREAMS, np.uint16)
    known = row_of, entries, np.zeros(9, np.uint8)
    writer.prepare(entries, known, 8, 0)
    for pstreams, rows, wrong, reason in (
        (4, entries, known, "pStream"),
        (8, entries[:-1], known, "size"),
        (8, entries, (row_of[1:], entries, known[2]), "size"),
        (8, entries, (row_of + np.uint16(1), entries, known[2]), "size"),
        (8, entries, (row_of, entries, np.full(1, 9, np.uint8)), "chunk class"),
        (8, entries, (row_of, entries, np.zeros(_core.CHUNKS + 1, np.uint8)), "size"),
    ):
        with pytest.raises(ValueError, match=reason):
            writer.prepare(rows, wrong, pstreams, 0)
        with pytest.raises(RuntimeError, match="none is prepared"):
            writer.publish()
    assert model.active == 0
