"""Publication of placement models to the filesystem; each is checked before it goes out."""

from __future__ import annotations

import logging

import numpy as np

from classifierd import _core, explain
from classifierd.choice import Tags
from classifierd.knowledge import Knowledge
from classifierd.learner import Known, Table
from classifierd.records import CHUNK_PAGES, KIND_TRIM, Ints, Records, pages_one_by_one

log = logging.getLogger(__name__)

_END_CLASSES = 6


def publish(
    writer: _core.ModelWriter, knowledge: Knowledge, met_clock: int
) -> frozenset[int] | None:
    """Hand over what serves; it speaks for vStreams born before `met_clock`, in pages written.

    Publishes nothing before there is something to say: by hints and lifetimes measured the
    filesystem places by itself (docs/DESIGN.md). Nor if it would understand the model otherwise.
    Returns the pStreams that the model names, as the filesystem reads it; None: no model.
    """
    life = knowledge.learner.life
    if not knowledge.speaks:
        log.info("nothing decided after %s of writes: no placement has copied less yet",
                 explain.size(life.clock_pages))  # fmt: skip
        return None
    table, records = knowledge.placements(), knowledge.sample_
    logistic = knowledge.contest.logistic_of(knowledge.published)
    clock_pages = max(met_clock, life.device_clock_pages)
    known, contest = knowledge.learner.known_, knowledge.contest
    writer.prepare(
        table.reshape(-1), known, contest.pstreams, clock_pages, knowledge.published, logistic
    )
    if logistic is None:
        meant = by_table(table, known, records)
    else:
        meant = by_model(logistic, known, records)
    if misread := int((writer.place(records) != meant).sum()):
        log.error("nothing published: %d of %d pages would be placed otherwise than is meant",
                  misread, len(meant))  # fmt: skip
        return None
    log.debug("model %d published", writer.publish())
    named = table if logistic is None else logistic[2]
    return frozenset(np.unique(named).tolist())


def basis_of(knowledge: Knowledge) -> str:
    """The evidence of a table, in words for people."""
    life = knowledge.learner.life
    return (
        f"learned from {explain.size(life.clock_pages)} of writes, {life.deaths} deaths seen, "
        f"{len(knowledge.learner.vstreams)} vStreams known"
    )


def by_table(table: Table, known: Known, records: Records) -> Tags:
    """Return the pStream that a table means for each page written, u8[pages]."""
    row_of, _, chunks = known
    writes = records[records["kind"] != KIND_TRIM]
    row, place = pages_one_by_one(writes["pages"].astype(np.int64))
    meant: Tags = table[row_of[writes["vstream"][row]], shapes_of(writes[row], place, chunks)]
    return meant


def by_model(logistic: _core.ServingLogistic, known: Known, records: Records) -> Tags:
    """Return the pStream that a logistic model means for each page written, u8[pages]."""
    model, cut, pstreams = logistic
    meant: Tags = pstreams[model.classes_of(records, known, cut)]
    return meant


def shapes_of(records: Records, place: Ints, chunks: Table) -> Ints:
    """The shape of the page at `place` in each record (base/wire/model_table.h), by itself."""
    request = records["request_pages"].astype(np.int64)
    to_end = request - 1 - (records["request_offset"].astype(np.int64) + place)
    end = np.select([request == 1, request == 2], [0, 1 + to_end], 3 + np.minimum(to_end, 2))
    chunk = (records["block"].astype(np.int64) + place) // CHUNK_PAGES
    classes = np.append(chunks, np.uint8(0))[np.minimum(chunk, len(chunks))].astype(np.int64)
    age = records["age"].astype(np.int64)
    shapes: Ints = end + (age + classes * (_core.AGE_OLD + 1)) * _END_CLASSES
    return shapes
