"""The saving by streams: sampled against whole devices, kept, told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from classifierd import _core
from classifierd.contest import Device
from classifierd.records import BLOCK_BYTES, Records, from_bytes, make
from classifierd.savings import Period, Savings, month_of, sampling, state_path
from fake_filesystem import UUID

NOVEMBER, DECEMBER = 1_763_000_000_000, 1_765_000_000_000
LIVE = 1 << 16


def test_a_stream_that_is_released_holds_no_block_open() -> None:
    rng = np.random.default_rng(5)
    pages, capacity = rng.integers(1024, 16_384, 150_000), 16_384
    records = make(pages, np.ones(len(pages)))
    once = make(np.arange(0, 64 * 16, 64), np.ones(16))
    once["pstream"] = np.arange(16) % 15 + 1  # a page or two in each of fifteen streams
    copied = []
    for released in (False, True):
        shadow = _core.SavingsShadow(capacity, 16, 0.3, 256, "shared", 1, 1)
        shadow.fill(capacity)
        shadow.feed(once)
        for stream in range(1, 16) if released else ():
            shadow.release(stream)
        shadow.feed(records)
        copied.append(int(shadow.counts()[0, 2]))
    assert copied[1] < 0.9 * copied[0]
    shadow.release(99)  # no such stream: nothing


def test_what_placement_uses_no_more_holds_no_block_open_in_the_sums() -> None:
    rng = np.random.default_rng(5)
    pages, capacity = rng.integers(1024, 16_384, 150_000), 16_384
    once = make(np.arange(0, 64 * 16, 64), np.ones(16))
    once["pstream"] = np.arange(16) % 15 + 1  # a page or two in each of fifteen streams
    copied = []
    for released in ((), range(1, 16)):
        savings = Savings(capacity, Device(capacity, 16, 0.3, 256, "shared"), capacity, NOVEMBER)
        savings.feed(once)
        savings.release(released)
        savings.feed(make(pages, np.ones(len(pages))))
        savings.count(NOVEMBER)
        copied.append(savings.all.placed_copied)
    assert copied[1] < 0.9 * copied[0]


def filled(writes: int = 400_000) -> Savings:
    savings = Savings(LIVE, Device(LIVE, 4, 0.07, 64, "own"), 0, NOVEMBER)
    rng = np.random.default_rng(1)
    # Hot and cold pages in requests of one: apart by stream, mixed without.
    hot = rng.random(writes) < 0.9
    block = np.where(hot, rng.integers(0, LIVE // 10, len(hot)), rng.integers(0, LIVE, len(hot)))
    everything = np.arange(LIVE)
    raw = np.zeros(LIVE + len(hot), records_dtype())
    raw["block"] = np.concatenate([everything, block])
    raw["pages"] = raw["request_pages"] = 1
    raw["pstream"] = np.concatenate([everything * 0 + 1, np.where(hot, 0, 1)])
    savings.feed(raw)
    return savings


def records_dtype() -> np.dtype[np.void]:
    return from_bytes(np.zeros(0, np.uint8)).dtype


def test_streams_that_part_hot_from_cold_save_and_the_oracle_saves_no_less() -> None:
    savings = filled()
    savings.count(NOVEMBER)
    told = savings.all.as_report()
    assert told["written_bytes"] == (LIVE + 400_000) * BLOCK_BYTES
    assert told["saved_bytes"] > 0.05 * told["written_bytes"]
    assert told["written_bytes"] < told["nand_oracle_bytes"] <= told["nand_placed_bytes"]
    assert told["nand_off_bytes"] - told["nand_placed_bytes"] == told["saved_bytes"]
    assert told["saved_low_bytes"] <= told["saved_bytes"] <= told["saved_high_bytes"]


def test_limits_come_from_how_much_the_parts_differ() -> None:
    period = Period(NOVEMBER)
    period.fold(4)
    period.off = np.array([10.0, 10.0, 10.0, 10.0])
    assert period.variance == 0
    period.off = np.array([8.0, 12.0, 8.0, 12.0])
    told = period.as_report()
    half = 3.182 * np.sqrt(np.var([8, 12, 8, 12], ddof=1) / 4)
    assert told["saved_bytes"] == 10 * BLOCK_BYTES
    assert told["saved_high_bytes"] == round(10 + half) * BLOCK_BYTES


def test_large_devices_are_sampled_and_small_ones_followed_whole() -> None:
    assert sampling(LIVE) == (1, 1)
    assert sampling(16 << 20) == (64, 4)  # 64 GiB
    assert sampling(64 << 20) == (64, 4)
    for pages in (1 << 20, 1 << 24, 1 << 28, 1 << 32):
        one_in, parts = sampling(pages)
        assert pages / one_in <= 1 << 20
        assert parts == 4


def test_months_begin_anew_and_the_whole_goes_on(tmp_path: Path) -> None:
    savings = filled()
    savings.count(NOVEMBER)
    november = savings.report(NOVEMBER)["month"]
    savings.count(DECEMBER)
    december = savings.report(DECEMBER)["month"]
    assert isinstance(november, dict)
    assert isinstance(december, dict)
    assert november["written_bytes"] > 0
    assert december["written_bytes"] == 0
    assert month_of(NOVEMBER) != month_of(DECEMBER)
    savings.save(tmp_path, UUID)
    again = Savings(LIVE, Device(LIVE, 4), 0, DECEMBER)
    assert again.load(tmp_path, UUID)
    assert again.report(DECEMBER) == savings.report(DECEMBER)
    more = Savings(1 << 22, Device(1 << 22, 4), 0, DECEMBER)  # it has grown: sampled now
    assert more.load(tmp_path, UUID)
    more.count(DECEMBER)
    assert more.all.as_report() == savings.all.as_report()


def test_the_last_two_years_months_are_kept() -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    months = [
        round(datetime(2024 + month // 12, 1 + month % 12, 15, tzinfo=UTC).timestamp() * 1000)
        for month in range(26)
    ]
    for now in months:
        savings.count(now)
    assert list(savings.months) == [month_of(now) for now in months[2:]]
    assert len(savings.months) == 24


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body.update(version=2),
        lambda body: body.update(uuid="00"),
        lambda body: body.update(all=7),
        lambda body: body["all"].update(off=[]),
        lambda body: body["all"].update(off=[1.0, 2.0]),
        lambda body: body["all"].update(off=[-1.0]),
        lambda body: body["all"].update(written=float("nan")),
        lambda body: body["all"].update(written="much"),
        lambda body: body.update(months=[]),
        lambda body: body.update(moments=[[1, 2]]),
        lambda body: body.update(moments=[[-1] * 7]),
        lambda body: body.pop("moments"),
    ],
)
def test_a_state_that_cannot_be_is_not_used(tmp_path: Path, spoil: object) -> None:
    savings = filled(1000)
    savings.count(NOVEMBER)
    savings.save(tmp_path, UUID)
    path = state_path(tmp_path, UUID)
    body = json.loads(path.read_text())
    assert callable(spoil)
    spoil(body)
    path.write_text(json.dumps(body))
    fresh = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    before = fresh.report(NOVEMBER)
    assert not fresh.load(tmp_path, UUID)
    assert fresh.report(NOVEMBER) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "{}"])
def test_a_file_that_is_no_state_is_not_used(tmp_path: Path, text: str) -> None:
    state_path(tmp_path, UUID).write_text(text)
    assert not Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER).load(tmp_path, UUID)


def test_moments_stay_few_and_far_apart() -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    for second in range(3000):
        savings.remember(NOVEMBER + 1000 * second, 1000 * second, second, 2 * second)
    assert len(savings.moments) <= 256
    assert savings.moments[0][0] == NOVEMBER
    assert savings.moments[-1][-1] >= 2 * 2900
    assert len(json.dumps(savings.report(NOVEMBER))) < 60_000  # of a control request: 64 KiB


def test_a_gap_without_a_daemon_does_not_keep_later_moments_apart(tmp_path: Path) -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    week = 7 * 86_400_000
    for at in (0, 1000, 2000, week):
        savings.remember(NOVEMBER + at, at, 0, 0)
    savings.save(tmp_path, UUID)
    again = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    assert again.load(tmp_path, UUID)
    again.remember(NOVEMBER + week + 1000, 7, 0, 0)
    assert len(again.moments) == 5


YEAR = 365 * 86_400_000


def dates(savings: Savings) -> list[int]:
    """When its moments were, after NOVEMBER."""
    return [moment[0] - NOVEMBER for moment in savings.moments]


def test_history_goes_on_in_order_while_the_wall_clock_jumps() -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    jumps = (0, 70 * YEAR, 0, -50 * YEAR, 0)
    for second in range(50):
        jump = jumps[second // 10]
        savings.remember(NOVEMBER + jump + 1000 * second, 1000 * second, second, second)
        told = dates(savings)
        assert told == [jump + 1000 * each for each in range(second + 1)], "by the clock there is"
    assert [moment[-1] for moment in savings.moments] == list(range(50))


@pytest.mark.parametrize("wrong", [0, 1_000_000, NOVEMBER + 70 * YEAR])
def test_one_wrong_reading_of_the_wall_clock_moves_nothing_for_good(wrong: int) -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    for second in range(5):
        now = wrong if second == 3 else NOVEMBER + 1000 * second
        savings.remember(now, 1000 * second, 0, 0)
        assert min(dates(savings)) >= -NOVEMBER
        assert dates(savings) == sorted(dates(savings))
    assert dates(savings) == [0, 1000, 2000, 3000, 4000]


def test_moments_are_dated_anew_when_no_new_one_is_due() -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    savings.remember(NOVEMBER - 50 * YEAR, 0, 0, 0)
    savings.remember(NOVEMBER + 200, 200, 0, 0)
    assert dates(savings) == [0]


def test_few_of_many_moments_keep_their_dates_through_a_jump() -> None:
    savings = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    for second in range(300):
        jump = -50 * YEAR if 200 <= second < 280 else 0
        savings.remember(NOVEMBER + jump + 1000 * second, 1000 * second, second, second)
    assert 100 < len(savings.moments) < 256, "some went"
    assert dates(savings) == [1000 * moment[-1] for moment in savings.moments]


def kept(folder: Path, *at: int) -> Savings:
    """A run that goes on after one that remembered these moments."""
    before = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    for each in at:
        before.remember(NOVEMBER + each, each, 0, 0)
    before.save(folder, UUID)
    again = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    assert again.load(folder, UUID)
    return again


def test_what_an_earlier_run_remembered_stays_while_the_clock_is_set_back(tmp_path: Path) -> None:
    again = kept(tmp_path, 0, 1000)
    for second in range(3):  # a clock without a battery, set right later
        again.remember(1000 * second, 1000 * second, 0, 0)
    assert dates(again) == [0, 1000, 1000, 1000]
    again.remember(NOVEMBER + 20_000, 9000, 0, 0)
    assert dates(again) == [0, 1000, 12_000, 13_000, 20_000]


def test_what_an_earlier_run_dated_in_the_future_holds_up_nothing(tmp_path: Path) -> None:
    again = kept(tmp_path, 0, 1000, 70 * YEAR, 70 * YEAR + 1000)
    again.remember(5000, 5000, 0, 0)  # by a clock without a battery nobody was ahead
    assert dates(again) == [0, 1000, 70 * YEAR, 70 * YEAR + 1000]
    for second in (10, 11):
        again.remember(NOVEMBER + 1000 * second, 1000 * second, 0, 0)
    assert dates(again) == [0, 1000, 10_000, 10_000, 10_000, 11_000]
    again.save(tmp_path, UUID)
    later = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    assert later.load(tmp_path, UUID)
    for second in (20, 21):
        later.remember(NOVEMBER + 1000 * second, 1000 * second, 0, 0)
    assert dates(later) == [*dates(again), 20_000, 21_000]


def test_moments_of_one_date_do_not_bring_later_ones_closer(tmp_path: Path) -> None:
    again = kept(tmp_path, 0, 60_000, 120_000)
    for moment in again.moments[1:]:
        moment[0] = NOVEMBER + 60_000  # as a clock that was set back leaves them
    again.save(tmp_path, UUID)
    later = Savings(LIVE, Device(LIVE, 4), 0, NOVEMBER)
    assert later.load(tmp_path, UUID)
    for at in (180_000, 210_000, 240_000):
        later.remember(NOVEMBER + at, at, 0, 0)
    assert dates(later) == [0, 60_000, 60_000, 180_000, 240_000]


def some(pages: int) -> Records:
    raw = np.zeros(pages, records_dtype())
    raw["block"] = np.arange(pages)
    raw["pages"] = raw["request_pages"] = 1
    return raw


def test_months_are_summed_by_the_clock_there_is_and_nothing_is_lost() -> None:
    savings = filled(1000)
    for now in (NOVEMBER, NOVEMBER + 70 * YEAR, DECEMBER, 0, NOVEMBER):
        savings.feed(some(1000))
        savings.count(now)
        assert month_of(now) in savings.months
    summed = sum(period.written for period in savings.months.values())
    assert summed == savings.all.written
    for month in range(30):
        savings.count(DECEMBER + month * YEAR // 12)
    savings.feed(some(1000))
    savings.count(0)  # the oldest of all, and running
    assert savings.months[month_of(0)].written == 1000
