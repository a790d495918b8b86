"""The daemon's knowledge of one filesystem, without sockets."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from classifierd import _core, clusters, state
from classifierd.config import Config, DaemonSettings
from classifierd.contest import Contest, Device
from classifierd.contexts import VStream
from classifierd.knowledge import Identity, Knowledge
from classifierd.publication import publish
from classifierd.records import Records, make
from classifierd.traces import telemetry
from fake_filesystem import UUID, ModelArea
from writes import hot_and_cold_files, logs, logs_and_files

LIVE = 8192


def knowledge(state_dir: Path | None = None, used: int = 0) -> Knowledge:
    identity = Identity(UUID, 2 * LIVE, used)
    config = Config(daemon=DaemonSettings(candidates=("nosep", "life-table")))
    return Knowledge(identity, Device(LIVE, 8), config, state_dir)


def some_logs(pages: int) -> tuple[Records, list[VStream]]:
    raw, vstreams = logs(pages, 1, LIVE)
    return telemetry(raw), vstreams


def published_table(known: Knowledge, name: str) -> np.ndarray:
    table: np.ndarray = known.contest.tables_[name][known.learner.row_of_]
    return table


def learn(known: Knowledge, records: Records) -> None:
    at = 0
    while at < len(records):
        at += known.feed(records[at:])
        if known.epoch_due:
            known.end_epoch()


def taught(state_dir: Path) -> tuple[Knowledge, list[VStream]]:
    """Let all candidates learn logs and files; return their knowledge and the vStreams."""
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), state_dir)
    raw, vstreams = logs_and_files(4 * LIVE, 1, LIVE)
    known.know(vstreams)
    learn(known, telemetry(raw))
    return known, vstreams


def test_what_serves_is_published_and_a_switch_is_said(
    model: ModelArea, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    known, writer = knowledge(), _core.ModelWriter(model.fd)
    records, vstreams = some_logs(10 * LIVE)
    known.know(vstreams)
    learn(known, records[: len(records) // 8])
    assert len(np.unique(known.contest.tables_["life-table"])) > 1, "the table would speak already"
    publish(writer, known, 0)
    assert writer.generation == 0
    assert "nothing decided" in caplog.text
    learn(known, records[len(records) // 8 :])
    publish(writer, known, 0)
    assert "wins the contest, not nosep" in caplog.text
    assert model.kind() == known.contest.serving != "nosep"
    assert len(np.unique(model.checked_table(8)[vstreams[0].number])) > 1


@pytest.mark.parametrize("name", ["logistic", "logistic-few"])
def test_a_logistic_model_is_published_as_the_shadow_devices_know_it(
    model: ModelArea, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The next pages go where its candidate says, until either learns more."""
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), None)
    writer = _core.ModelWriter(model.fd)
    raw, vstreams = logs_and_files(12 * LIVE, 1, LIVE)
    records = telemetry(raw)
    known.know(vstreams)
    end = len(records) - 200
    learn(known, records[:end])
    monkeypatch.setattr(Contest, "serving", name)
    named = publish(writer, known, 0)
    assert named is not None
    assert (model.kind(), model.serves()) == (name, 1)
    assert (model.checked_table(8) == published_table(known, "life-table")).all()
    tags, *_ = next(known.contest.run(records[end:]))
    placed = writer.place(records[end:])[: len(tags[name])]
    assert len(np.unique(placed)) > 1
    assert set(placed.tolist()) <= named
    assert (placed == tags[name]).all()


def test_a_logistic_model_serves_on_after_a_restart(
    model: ModelArea, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), tmp_path)
    raw, vstreams = logs_and_files(12 * LIVE, 1, LIVE)
    records = telemetry(raw)
    known.know(vstreams)
    learn(known, records)
    assert known.contest.serve("nosep")
    assert not known.contest.serve("logistic"), "only a restored model serves at once"
    monkeypatch.setattr(Contest, "serving", "logistic")
    monkeypatch.setattr(Contest, "decided", True)
    known.save()
    monkeypatch.undo()
    later = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), tmp_path)
    later.know(vstreams)
    assert later.load()
    assert later.contest.serving == "logistic"
    placed = []
    for each in (known, later):
        writer = _core.ModelWriter(model.fd)
        monkeypatch.setattr(Contest, "serving", "logistic")
        each.sample_ = records[-500:]
        publish(writer, each, 0)
        placed.append(writer.place(records[-500:]))
    assert len(np.unique(placed[0])) > 1
    assert (placed[0] == placed[1]).all()


def test_weights_of_an_older_state_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 4 knew no place in the file, so its weights are those of other features."""
    known, vstreams = taught(tmp_path)
    monkeypatch.setattr(Contest, "serving", "logistic")
    monkeypatch.setattr(Contest, "decided", True)
    monkeypatch.setattr(state, "_VERSION", 4)
    known.save()
    monkeypatch.undo()
    later = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), tmp_path)
    later.know(vstreams)
    assert later.load()
    assert len(later.learner.life.cells()[0]) > 0
    assert later.contest.serving == "life-table"


def test_with_fewer_classes_of_chunks_the_rest_of_the_state_is_used(tmp_path: Path) -> None:
    known, vstreams = taught(tmp_path)
    known.save()
    fewer = Config(daemon=DaemonSettings(chunk_classes=3))
    later = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), fewer, tmp_path)
    later.know(vstreams)
    assert len(known.contest.chunks.centres_) > 3
    assert later.load()
    cells, *_ = later.learner.life.cells()
    assert len(cells) > 0
    assert (cells % _core.SHAPES < _core.SHAPES // _core.CHUNK_CLASSES).all()
    assert len(later.contest.chunks.map_) == 0


def test_a_state_that_cannot_be_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, vstreams = taught(tmp_path)
    wrongs: tuple[object, ...] = ([], {"edges": []}, {"edges": {"logistic": 3}})
    for wrong in wrongs:
        monkeypatch.setattr(Contest, "logistic_axis", lambda _, wrong=wrong: wrong)
        known.save()
        later = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), tmp_path)
        later.know(vstreams)
        assert not later.load()
        assert len(later.learner.life.cells()[0]) == 0
        assert later.learner.edges_ is None
        assert later.learner.vstreams.keys() == known.learner.vstreams.keys()


def test_a_logistic_model_does_not_serve_where_its_memory_is_gone(tmp_path: Path) -> None:
    few = Config(daemon=DaemonSettings(candidates=("logistic-few", "life-table")))
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), few, tmp_path)
    raw, vstreams = logs_and_files(2 * LIVE, 1, LIVE)
    known.know(vstreams)
    learn(known, telemetry(raw))
    known.contest.restore_logistic(known.contest.logistic_axis(), known.contest.logistic_arrays())
    assert known.contest.serve("logistic-few")
    known.save()
    for config, serving in ((few, "logistic-few"), (Config(), "life-table")):
        later = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), config, tmp_path)
        later.know(vstreams)
        assert later.load()
        assert later.contest.serving == serving, "another number of cuts is another model"
    grown = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE + 1, 8), few, tmp_path)
    grown.know(vstreams)
    assert grown.load()
    assert grown.contest.serving == "life-table", "lifetimes would be on another axis"


def test_the_life_table_serves_until_something_else_is_better(model: ModelArea) -> None:
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), None)
    writer = _core.ModelWriter(model.fd)
    records, vstreams = some_logs(LIVE)
    known.know(vstreams)
    learn(known, records)
    publish(writer, known, 0)
    assert known.contest.serving == "life-table"
    assert len(np.unique(model.checked_table(8)[vstreams[0].number])) > 1


def test_that_no_separation_is_best_is_published_too(model: ModelArea) -> None:
    anywhere = np.random.default_rng(1).integers(0, LIVE, 8 * LIVE)
    known, writer = knowledge(), _core.ModelWriter(model.fd)
    learn(known, telemetry(make(anywhere, 1)))
    assert known.contest.serving == "nosep"
    assert known.contest.decided
    publish(writer, known, 0)
    assert set(model.checked_table(8).ravel().tolist()) == {7}


def test_who_serves_is_remembered(tmp_path: Path) -> None:
    records, vstreams = some_logs(10 * LIVE)
    known = knowledge(tmp_path)
    known.know(vstreams)
    learn(known, records)
    assert known.contest.serving != "nosep"
    known.save()
    again = knowledge(tmp_path)
    again.know(vstreams)
    assert again.load()
    assert again.contest.serving == known.contest.serving
    assert (again.placements() == known.placements()).mean() > 0.9


def test_a_restart_moves_nothing_to_another_class(tmp_path: Path) -> None:
    """A cell whose lifetime lies near an edge stays where its data is."""
    raw, vstreams = logs_and_files(12 * LIVE, 1, LIVE)
    known = knowledge(tmp_path)
    known.know(vstreams)
    learn(known, telemetry(raw))
    cells, volume, *_ = known.learner.life.cells()
    # As hysteresis leaves it: whoever may stay in the class below has.
    edges = known.learner.edges_
    assert edges is not None
    vstream, shape = cells // _core.SHAPES, cells % _core.SHAPES
    mean = np.array([known.learner.expected(int(c) // _core.SHAPES)[0] for c in cells])
    mean = mean[np.arange(len(cells)), cells % _core.SHAPES]
    before = np.searchsorted(edges, mean - known.learner.settings.margin_log2, side="right")
    known.learner.table_[known.learner.row_of_[vstream], shape] = before
    known.save()
    again = knowledge(tmp_path)
    again.know(vstreams)
    assert again.load()
    after = again.learner.table_[again.learner.row_of_[vstream], shape]
    assert (after == before).all()
    assert (np.searchsorted(edges, mean, side="right") != before).any(), "or it would be easy"
    assert again.learner.live_pages == known.learner.live_pages
    assert volume.sum() > 0


def test_what_was_not_decided_is_not_remembered_as_decided(tmp_path: Path) -> None:
    records, vstreams = some_logs(2 * LIVE)
    known = knowledge(tmp_path)
    known.know(vstreams)
    learn(known, records[: len(records) // 2])
    assert not known.speaks
    known.save()
    again = knowledge(tmp_path)
    again.know(vstreams)
    assert again.load()
    assert not again.speaks


def test_what_was_there_before_counts_as_full() -> None:
    """A device that was full when the daemon came copies sooner than one that was empty."""
    raw, vstreams = hot_and_cold_files(LIVE * 3 // 4, 1, LIVE)
    records = telemetry(raw)[LIVE // 8 :]  # behind what is written first
    copies = []
    for used in (0, LIVE):
        known = knowledge(used=used)
        known.know(vstreams)
        learn(known, records)
        copies.append(known.end_epoch().copies["nosep"])
    empty, full = copies
    assert full > 2 * empty


def test_a_small_device_that_is_nearly_full_has_one_stream(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It has them again when there is room, and does not waver in between."""
    caplog.set_level(logging.INFO)
    config = Config(daemon=DaemonSettings(candidates=("life-table",)))
    records, vstreams = some_logs(2 * LIVE)
    known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), config, None)
    known.know(vstreams)
    learn(known, records)
    streams = []
    for share in (0.87, 0.89, 0.86, 0.84, 0.87):
        known.fill(int(share * 2 * LIVE))
        streams.append(len(np.unique(known.placements())))
    assert [count > 1 for count in streams] == [True, False, False, True, True]
    assert caplog.text.count("too full for streams") == 1


def test_a_large_device_keeps_its_streams_however_full() -> None:
    identity = Identity(UUID, 2 * LIVE, 2 * LIVE)
    device = Device(LIVE, 8, block_pages=4)
    assert not Knowledge(identity, device, Config(), None).crowded


class IdleKMeans:
    """A K-means that learns nothing: every chunk is in the first class."""

    def __init__(self, k: int, **_: object) -> None:
        self.cluster_centers_ = np.zeros((k, len(_core.CHUNK_FEATURES)), np.float32)

    def fit(self, points: np.ndarray) -> IdleKMeans:
        self.cluster_centers_ = np.tile(points.mean(axis=0), (len(self.cluster_centers_), 1))
        return self

    def predict(self, points: np.ndarray) -> np.ndarray:
        return np.zeros(len(points), np.int32)


def test_the_published_model_depends_on_scikit_learns_clusters(
    model: ModelArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, vstreams = hot_and_cold_files(12 * LIVE, 1, LIVE)
    raw["vstream"] = 0
    records = telemetry(raw)

    def tables() -> tuple[np.ndarray, np.ndarray]:
        known = Knowledge(Identity(UUID, 2 * LIVE), Device(LIVE, 8), Config(), None)
        known.know(vstreams[:1])
        learn(known, records)
        writer = _core.ModelWriter(model.fd)
        monkeypatch.setattr(Contest, "serving", "life-table")
        assert publish(writer, known, 0) is not None
        return model.checked_table(8)[0], writer.place(records[-500:])

    real, idle = tables(), None
    monkeypatch.setattr(clusters, "KMeans", IdleKMeans)
    idle = tables()
    assert (real[0] != idle[0]).mean() > 0.05
    assert (real[1] != idle[1]).mean() > 0.05
    assert len(np.unique(real[1])) > len(np.unique(idle[1]))
