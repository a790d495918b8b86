"""streamfs's requests in place of another file system's: where, and when they are trimmed."""

from __future__ import annotations

import numpy as np
import pytest

from classifierd import _core
from classifierd.records import KIND_TRIM, RECORD, Records, make

CAPACITY = 8192


def at(time_ms: int, block: int, pages: int, *, trim: bool = False, vstream: int = 0) -> Records:
    out = make(block, pages, trim=trim, vstream=vstream)
    out["time_ms"] = time_ms
    return out


def sent(places: _core.OwnPlaces, *requests: Records) -> list[tuple[bool, int, int]]:
    """Trim or not, first page and pages of each."""
    out = places.take(np.concatenate(requests)).view(RECORD)
    kinds = (out["kind"] == KIND_TRIM).tolist()
    return list(zip(kinds, out["block"].tolist(), out["pages"].tolist(), strict=True))


def test_what_is_held_is_overwritten_where_it_lies_and_new_data_go_elsewhere() -> None:
    places = _core.OwnPlaces(CAPACITY, 0)
    places.hold(0, 16)
    places.hold(24, 8)
    assert sent(places, at(0, 10, 2), at(1, 100, 4), at(2, 101, 2), at(3, 14, 4)) == [
        (False, 10, 2),
        (False, 16, 4),  # the first pages that nothing holds
        (False, 17, 2),
        (False, 14, 2),
        (False, 20, 2),
    ]


def test_parts_know_their_place_in_the_request() -> None:
    places = _core.OwnPlaces(CAPACITY, 0)
    places.hold(16, 2)
    out = places.take(at(0, 14, 4, vstream=7)).view(RECORD)
    assert out["block"].tolist() == [0, 16]
    assert out["pages"].tolist() == [2, 2]
    assert out["request_offset"].tolist() == [0, 2]
    assert out["request_pages"].tolist() == [4, 4]
    assert out["vstream"].tolist() == [7, 7]


def test_what_is_freed_is_trimmed_by_a_pass_and_not_used_before() -> None:
    places = _core.OwnPlaces(CAPACITY, 0)
    found = sent(
        places,
        at(0, 0, 4),
        at(100, 0, 4, trim=True),  # no epoch has ended: it waits for the pass alone
        at(110, 0, 4),  # the other file system uses the blocks again at once
        at(499, 50, 1),
        at(501, 60, 1),
    )
    assert found == [(False, 0, 4), (False, 4, 4), (False, 8, 1), (True, 0, 4), (False, 9, 1)]
    assert places.waiting == pytest.approx((4 * 4 + 4) / (4 + 4 + 1 + 1))


@pytest.mark.parametrize(("held", "waits_ms"), [(0, 5500), (CAPACITY - 500, 600)])
def test_what_an_epoch_has_committed_waits_for_the_next_ones_end(held: int, waits_ms: int) -> None:
    places = _core.OwnPlaces(CAPACITY, 0)
    places.hold(0, max(held, 4))
    found = [
        sent(places, at(ms, CAPACITY - 1, 1)) if ms else sent(places, at(0, 0, 4, trim=True))
        for ms in range(0, 8000, 50)
    ]
    trims = [50 * i for i, each in enumerate(found) if any(trim for trim, _, _ in each)]
    assert len(trims) == 1
    assert waits_ms - 200 <= trims[0] <= waits_ms + 200


def test_after_a_second_without_writes_nothing_waits() -> None:
    places = _core.OwnPlaces(CAPACITY, 0)
    places.hold(0, 4)
    assert sent(places, at(0, 8, 1), at(1, 0, 4, trim=True), at(1800, 9, 1))[-2] == (True, 0, 4)


def test_where_nothing_is_free_a_writer_waits_for_what_was_freed() -> None:
    places = _core.OwnPlaces(16, 0)
    places.hold(0, 16)
    assert sent(places, at(0, 4, 2, trim=True), at(1, 4, 2)) == [(True, 4, 2), (False, 4, 2)]


def test_a_trim_of_the_whole_device_frees_all_that_is_there() -> None:
    places = _core.OwnPlaces(1 << 30, 0)
    places.hold(3, 2)
    found = sent(places, at(0, 1 << 20, 2), at(1, 0, 1 << 30, trim=True), at(9000, 5, 1))
    assert found[0] == (False, 0, 2)
    assert sorted(found[1:3]) == [(True, 0, 2), (True, 3, 2)]
    assert found[3] == (False, 2, 1)


def test_what_is_trimmed_was_written_and_nothing_stays_behind() -> None:
    rng = np.random.default_rng(5)
    places, mine, ms = _core.OwnPlaces(CAPACITY, 64), set(range(1000, 3000)), 0
    places.hold(1000, 2000)

    def ask(request: Records) -> None:
        for trim, first, pages in sent(places, request):
            run = set(range(first, first + pages))
            assert not trim or run <= mine
            mine.symmetric_difference_update(run if trim else run - mine)

    for _ in range(3000):
        ms += int(rng.integers(0, 60))
        block, pages = int(rng.integers(0, 5900)), int(rng.integers(1, 64))
        ask(at(ms, block, pages, trim=bool(rng.random() < 0.4)))
    assert len(mine) > 1000
    ask(at(ms, 0, 5964, trim=True))
    for later in (9000, 18000):
        ask(at(ms + later, 0, 1))
    assert len(mine) == 1


def test_what_cannot_be_is_refused() -> None:
    for capacity, log in ((0, 0), (16, 16), (1 << 35, 0)):
        with pytest.raises(ValueError, match="no room"):
            _core.OwnPlaces(capacity, log)
    places = _core.OwnPlaces(16, 0)
    places.hold(1 << 40, 5)
    assert sent(places, at(0, 15, 2)) == []  # beyond the end
