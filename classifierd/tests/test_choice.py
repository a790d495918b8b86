"""Candidates in competition on shadow devices."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

from classifierd import _core
from classifierd.choice import Choice
from classifierd.records import KIND_TRIM, Records, make
from classifierd.traces import telemetry
from writes import epochs, hot_and_cold_files

LIVE = 65_536
NAMES = ("apart", "mixed", "strewn")


def hot_and_cold(pages: int, seed: int) -> tuple[Records, list[np.ndarray]]:
    """Two programs; tags that keep them apart, that do not, and that mean nothing."""
    raw, _ = hot_and_cold_files(pages, seed, LIVE)
    records = telemetry(raw)
    apart = np.repeat(records["vstream"] - 1, records["pages"]).astype(np.uint8)
    strewn = np.random.default_rng(seed).integers(0, 2, len(apart)).astype(np.uint8)
    return records, [apart, np.zeros(len(apart), np.uint8), strewn]


@pytest.mark.parametrize("one_in", [1, 4])
def test_a_shadow_that_grows_is_full_before_the_device_is(one_in: int) -> None:
    """A quarter of the device lives: what grows copies as a device of that size would."""
    live = LIVE // 4
    records = telemetry(hot_and_cold_files(300_000, 4, live)[0])
    tags = np.zeros(int(records["pages"].sum()), np.uint8)

    def shadow(pages: int, begins: float) -> _core.Shadow:
        one = _core.Shadow(pages, 1, 2, 0.07, 64, pages // one_in, begins=begins)
        one.feed(records, tags)
        assert one.refused == 0
        return one

    small, grown, whole = shadow(live, 1), shadow(LIVE, 1 / 16), shadow(LIVE, 1)
    assert whole.copied[0] < small.copied[0] / 20
    assert small.copied[0] == pytest.approx(grown.copied[0], rel=0.05)
    assert grown.live_pages <= live // one_in
    grown.fill(LIVE, 1)  # everything else, too
    assert (grown.live_pages, grown.refused) == (LIVE // one_in, 0)


def test_a_sampled_shadow_ranks_as_the_whole_does() -> None:
    records, tags = hot_and_cold(1_500_000, 2)
    shadow = _core.Shadow(LIVE, 3, 2, 0.07, 256, LIVE // 4)
    shadow.feed(records, np.concatenate(tags))
    assert shadow.one_in == 4
    assert 0.05 < shadow.written / len(tags[0]) < 0.6  # a few chunks take most of the writes
    apart, mixed, strewn = shadow.copied
    assert apart < mixed < strewn * 1.05


@pytest.mark.parametrize("one_in", [1, 3, 8])
def test_a_trim_kills_what_it_names_and_nothing_beside_it(one_in: int) -> None:
    live, pieces = 8192, np.random.default_rng(9).integers(1, 400, 160)
    begins = np.cumsum(pieces) - pieces
    write, kill = make(begins, pieces), make(begins, pieces)
    kill["kind"] = KIND_TRIM
    shadow = _core.Shadow(live, 1, 1, 0.25, 64, live // one_in)
    assert shadow.one_in == one_in

    def feed(records: Records) -> None:
        written = records["pages"][records["kind"] != KIND_TRIM].sum()
        shadow.feed(records.copy(), np.zeros(written, np.uint8))

    for _ in range(4):
        feed(np.stack([write, kill], axis=1)[::2].reshape(-1))
    assert (shadow.copied[0], shadow.refused) == (0, 0), "something was left"
    fits = int(np.searchsorted(begins, live - 400))
    feed(write[:fits])
    feed(kill[:fits:2])
    feed(make(np.array([1 << 20]), np.array([round(0.9 * live)])))
    assert shadow.refused > 0, "there is no room beside the other half"


def test_a_released_class_keeps_no_block_open() -> None:
    """Three classes once used hold three blocks of a small spare until they are released."""
    raw, _ = hot_and_cold_files(300_000, 3, LIVE // 4)
    records = telemetry(raw)
    pages = int(records["pages"].sum())
    copied = []
    for released in (False, True):
        shadow = _core.Shadow(LIVE // 4, 1, 8, 0.07, gc_mode="shared")  # copies need none of theirs
        early = len(records) // 10
        some = int(records["pages"][:early].sum())
        shadow.feed(records[:early], (np.arange(some) % 8).astype(np.uint8))
        for cls in range(7) if released else ():
            shadow.release(0, cls)
        shadow.feed(records[early:], np.full(pages - some, 7, np.uint8))
        copied.append(shadow.copied[0])
    assert copied[1] < 0.9 * copied[0]
    with pytest.raises(ValueError, match="no candidate or class"):
        shadow.release(0, 8)


def test_after_a_fork_all_devices_are_what_the_serving_one_was() -> None:
    records, tags = hot_and_cold(600_000, 7)
    half, pages = len(records) // 2, int(records["pages"][: len(records) // 2].sum())
    shadow = _core.Shadow(LIVE, 3, 2)
    shadow.feed(records[:half], np.concatenate([tag[:pages] for tag in tags]))
    before = np.array(shadow.copied)
    assert len(set(before.tolist())) == 3
    shadow.fork(1)
    shadow.feed(records[half:], np.concatenate([tags[0][pages:]] * 3))
    since = np.array(shadow.copied) - before
    assert since[0] == since[1] == since[2] > 0
    with pytest.raises(ValueError, match="candidate"):
        shadow.fork(3)


def test_a_better_candidate_takes_over_and_stays() -> None:
    records, tags = hot_and_cold(3_000_000, 3)
    choice = Choice(NAMES, _core.Shadow(LIVE, 3, 2), "mixed")
    served, at = [], 0
    for part in epochs(records, 8192):
        pages = int(part["pages"].sum())
        served.append(choice.end_epoch(part, [tag[at : at + pages] for tag in tags]).serving)
        at += pages
    assert served[0] == "mixed"
    assert set(served[len(served) // 2 :]) == {"apart"}


def test_a_switch_is_not_taken_back_before_two_capacities_were_seen() -> None:
    """However good the other looks: what was just moved has had its price."""
    records, tags = hot_and_cold(1_200_000, 8)
    choice = Choice(("one", "other"), _core.Shadow(LIVE, 2, 2))
    at, switches = 0, list[int]()
    for part in epochs(records, 8192):
        pages = int(part["pages"].sum())
        own = [tag[at : at + pages] for tag in (tags[1], tags[0])]
        # From the switch on, the better tags are the other one's again.
        verdict = choice.end_epoch(part, own[::-1] if switches else own)
        at += pages
        if verdict.switched:
            switches.append(at)
    assert len(switches) >= 2
    assert min(np.diff(switches)) >= 2 * LIVE


class Scripted:
    """Shadow devices that copy what they are told to: for each page written, by candidate.

    With several such lists, one after the other.
    """

    def __init__(self, *copies: list[float]) -> None:
        self.live_pages, self.classes, self.refused, self.written = LIVE, 2, 0, 0
        self.rates, self.copied, self.forks = cycle(copies), [0.0] * len(copies[0]), list[int]()

    def feed(self, records: Records, _: np.ndarray) -> None:
        """Write all of it."""
        pages = int(records["pages"].sum())
        self.written += pages
        rates = next(self.rates)
        self.copied = [
            before + rate * pages for before, rate in zip(self.copied, rates, strict=True)
        ]

    def fork(self, _: int) -> None:
        """Note when."""
        self.forks.append(self.written)

    def release(self, _: int, __: int) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("serving", "copies", "forks_until"), [("nosep", [0.5, 0.1], 1), ("other", [0.1, 0.5], 2)]
)
def test_what_separates_is_left_only_for_what_is_better_from_where_it_stands(
    serving: str, copies: list[float], forks_until: int
) -> None:
    """A device that no separation filled alone is not what a mount that separated would have."""
    shadow = Scripted(copies)
    choice = Choice(("nosep", "other"), shadow, serving)  # type: ignore[arg-type]
    records, tags = hot_and_cold(1_200_000, 9)
    for part in epochs(records, 8192):
        if choice.end_epoch(part, [tags[0]] * 2).switched:
            break
    assert choice.serving != serving
    assert len(shadow.forks) == forks_until
    assert shadow.forks[0] < LIVE / 2
    assert forks_until == 1 or shadow.forks[1] - shadow.forks[0] >= 2 * LIVE


@pytest.mark.parametrize(
    ("lower", "taken"), [((0.05, 0.05), "few"), ((0.02, 0.3), "fine")], ids=["surely", "by luck"]
)
def test_of_what_is_nearly_alike_the_first_named_is_gone_over_to(
    lower: tuple[float, float], taken: str
) -> None:
    """Copies of few are .16 on average where it had luck, of fine .2 always, of nosep .8."""
    shadow = Scripted([0.2, lower[0], 0.8], [0.2, lower[1], 0.8])
    choice = Choice(("fine", "few", "nosep"), shadow, "nosep")  # type: ignore[arg-type]
    records, tags = hot_and_cold(600_000, 10)
    for part in epochs(records, 8192):
        if choice.end_epoch(part, [tags[0]] * 3).switched:
            break
    assert choice.serving == taken


def test_what_is_no_better_changes_nothing() -> None:
    records, tags = hot_and_cold(1_000_000, 4)
    choice = Choice(("one", "other"), _core.Shadow(LIVE, 2, 2))
    at = 0
    for part in epochs(records, 8192):
        pages = int(part["pages"].sum())
        verdict = choice.end_epoch(part, [tags[1][at : at + pages]] * 2)
        assert not verdict.switched
        at += pages
    assert verdict.copies["one"] == verdict.copies["other"] > 0


def test_a_shadow_that_overflows_has_no_opinion() -> None:
    records, tags = hot_and_cold(400_000, 5)
    choice = Choice(NAMES, _core.Shadow(LIVE // 8, 3, 2))
    at = 0
    for part in epochs(records, 8192):
        pages = int(part["pages"].sum())
        assert not choice.end_epoch(part, [tag[at : at + pages] for tag in tags]).switched
        at += pages


def test_tags_that_cannot_be_are_refused() -> None:
    records, tags = hot_and_cold(10_000, 6)
    shadow = _core.Shadow(LIVE, 1, 2)
    with pytest.raises(ValueError, match="class"):
        shadow.feed(records, tags[0] + 2)
    with pytest.raises(ValueError, match="tags"):
        shadow.feed(records, tags[0][:-1])
