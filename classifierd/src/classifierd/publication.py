"""What the daemon says to the filesystem: placement models, looked over before they go out."""

from __future__ import annotations

import logging

import numpy as np

from classifierd import _core, explain
from classifierd.knowledge import Knowledge
from classifierd.learner import Table
from classifierd.records import KIND_TRIM, Ints, Records, pages_one_by_one

log = logging.getLogger(__name__)

_END_CLASSES = 6


def publish(
    writer: _core.ModelWriter, knowledge: Knowledge, met_clock: int
) -> frozenset[int] | None:
    """Hand over what serves; it speaks for vStreams born before `met_clock`, in pages written.

    Not before there is something to say: by hints and lifetimes measured the filesystem places by
    itself (docs/DESIGN.md). And not if the filesystem would understand another thing by it. Returns
    the pStreams that the model names, as the filesystem reads it (Model::adopt); None: no model.
    """
    life = knowledge.learner.life
    if not knowledge.speaks:
        log.info("nothing decided after %s of writes: no placement has copied less yet",
                 explain.size(life.clock_pages))  # fmt: skip
        return None
    table = knowledge.placements()
    logistic = knowledge.contest.logistic_of(knowledge.published)
    if misread := pages_misread(table, knowledge.sample_):
        log.error("nothing published: %d of %d pages would be placed otherwise than is meant",
                  misread, _pages(knowledge.sample_).sum())  # fmt: skip
        return None
    generation = writer.publish(
        table.reshape(-1),
        knowledge.contest.pstreams,
        max(met_clock, life.device_clock_pages),
        knowledge.published,
        logistic,
    )
    log.debug("model %d published", generation)
    named = np.unique(table[:, : _core.SHAPES])
    return frozenset(named.tolist()) | frozenset([] if logistic is None else logistic[2].tolist())


def basis_of(knowledge: Knowledge) -> str:
    """What a table rests on, for people."""
    life = knowledge.learner.life
    return (
        f"learned from {explain.size(life.clock_pages)} of writes, {life.deaths} deaths seen, "
        f"{len(knowledge.learner.vstreams)} vStreams known"
    )


def pages_misread(table: Table, records: Records) -> int:
    """How many pages of `records` the filesystem's code places otherwise than numpy by `table`."""
    writes = records[records["kind"] != KIND_TRIM]
    row, place = pages_one_by_one(_pages(writes))
    meant = table[writes["vstream"][row], shapes_of(writes[row], place)]
    return int((_core.tags(writes, table.reshape(-1)) != meant).sum())


def shapes_of(records: Records, place: Ints) -> Ints:
    """The shape of the page at `place` in each record (base/wire/model_table.h), by itself."""
    request = records["request_pages"].astype(np.int64)
    to_end = request - 1 - (records["request_offset"].astype(np.int64) + place)
    end = np.select([request == 1, request == 2], [0, 1 + to_end], 3 + np.minimum(to_end, 2))
    return end + records["age"].astype(np.int64) * _END_CLASSES


def _pages(records: Records) -> Ints:
    return np.where(records["kind"] != KIND_TRIM, records["pages"], 0).astype(np.int64)
