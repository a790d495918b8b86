"""The replay's `learned` places as a mount does that adopts what the daemon publishes."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from classifierd import _core
from classifierd.config import DaemonSettings
from classifierd.contest import CANDIDATES, Contest
from classifierd.contexts import VStream
from classifierd.records import Records, make
from streamfs_lab.policies import Tags, Workload, contest_of, learned
from streamfs_lab.replay import workload_of
from streamfs_lab.workloads import WORKLOADS

LIVE = 8192
PSTREAMS = 8


@pytest.fixture
def area() -> Iterator[int]:
    """The model area of a mount."""
    fd = os.memfd_create("model", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _core.MODEL_BYTES)
    head = "<QII16s", _core.MODEL_MAGIC, _core.MODEL_VERSION, _core.MODEL_BUFFER_BYTES, b"\1" * 16
    with mmap.mmap(fd, _core.MODEL_BYTES) as mapped:
        mapped[:32] = struct.pack(*head)
    yield fd
    os.close(fd)


def random_writes(seed: int) -> Workload:
    """Requests of random places, lengths, vStreams and trims; the low half is hot."""
    rng = np.random.default_rng(seed)
    count = 6 * LIVE
    hot = rng.random(count) < 0.8
    blocks = np.where(hot, rng.integers(0, LIVE // 8, count), rng.integers(0, LIVE, count))
    pages = rng.integers(1, 9, count)
    trim = rng.random(count) < 0.02
    raw = make(blocks, pages, trim=trim, vstream=hot * rng.integers(1, 4, count))
    return workload_of(raw, [VStream(number) for number in range(4)], PSTREAMS)


class Mount:
    """The filesystem's own model class, and the daemon's way of publishing to it."""

    def __init__(self, area: int) -> None:
        self._writer = _core.ModelWriter(area)

    def adopt(self, contest: Contest) -> None:
        """Publish what serves, as publication.py does."""
        serving = contest.serving
        self._writer.prepare(
            contest.table_of(serving).reshape(-1),
            contest.learner.known_,
            contest.pstreams,
            0,
            serving,
            contest.logistic_of(serving),
        )
        self._writer.publish()

    def place(self, records: Records) -> Tags:
        return self._writer.place(records)


def placed_on_a_mount(workload: Workload, mount: Mount) -> tuple[Tags, set[str]]:
    """Return the pStream of each page, u8[pages written], and the candidates that served."""
    contest = contest_of(workload)
    records, at, begun = workload.records, 0, 0
    out, served = [], set()
    mount.adopt(contest)
    while at < len(records):
        at += contest.feed(records[at:])
        if contest.epoch_due or at == len(records):
            out.append(mount.place(records[begun:at]))
            served.add(contest.serving)
            contest.end_epoch()
            mount.adopt(contest)
            begun = at
    return np.concatenate(out), served


def assert_alike(placed: Tags, ours: Tags) -> None:
    """Compare all pages but a few: a request in which an epoch ends is two requests to place()."""
    assert (placed != ours).sum() <= len(ours) // 10_000


@pytest.mark.parametrize("seed", [1, 5])
def test_random_writes_go_where_a_mount_puts_them(area: int, seed: int) -> None:
    workload = random_writes(seed)
    placed, served = placed_on_a_mount(workload, Mount(area))
    assert_alike(placed, learned(workload).tags["learned"])
    assert len(np.unique(placed)) > 2
    assert {"life-table", "logistic"} <= served


def test_a_logistic_model_that_wins_places_as_on_a_mount(area: int) -> None:
    raw, _ = WORKLOADS["logs-only"](12 * LIVE, 1, LIVE)
    workload = workload_of(raw, [VStream(0)], PSTREAMS)
    placed, served = placed_on_a_mount(workload, Mount(area))
    assert any(name.startswith("logistic") for name in served), served
    assert_alike(placed, learned(workload).tags["learned"])


def test_the_candidates_are_the_daemons() -> None:
    assert contest_of(random_writes(1)).candidates == DaemonSettings().candidates == CANDIDATES
