"""The papers' jobs: sizes of the files, and the requests that fio is asked for."""

from itertools import pairwise
from pathlib import Path

import pytest
from bench.suites.jobs import WORKS, File, Work, letters, readers, sizes, writers

CHOI = WORKS[0]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_sizes_are_in_proportion_to_the_lifetimes_and_fit(work: Work) -> None:
    room = 3 << 30
    found = sizes(work, room)
    assert sum(found) <= room
    assert all(size % work.request == 0 for size in found)
    per_lifetime = [size / each for size, each in zip(found, work.lifetimes, strict=True)]
    for one, other in pairwise(per_lifetime):
        assert one == pytest.approx(other, rel=0.1)


def test_each_file_is_written_as_often_as_the_others() -> None:
    files = [File(Path("/a"), 1 << 20), File(Path("/b"), 10 << 20)]
    jobs = list(writers(CHOI, files, 100 << 20))
    assert [dict(pair.split("=") for pair in job)["io_size"] for job in jobs] == ["104857600"] * 2
    assert [dict(pair.split("=") for pair in job)["size"] for job in jobs] == [
        "1048576",
        "10485760",
    ]


def test_seventy_of_a_hundred_requests_are_reads() -> None:
    files = [File(Path(f"/{i}"), 1 << 20) for i in range(4)]
    [job] = readers(CHOI, files)
    words = dict(pair.split("=") for pair in job)
    reads = int(words["flow"]) * int(words["numjobs"])
    writes = sum(
        int(dict(p.split("=") for p in one)["flow"]) for one in writers(CHOI, files, 1 << 20)
    )
    assert reads / (reads + writes) == pytest.approx(0.7, abs=0.01)
    assert list(readers(WORKS[2], files)) == []


def test_numbers_in_letters_differ_and_hold_no_digit() -> None:
    names = [letters(number) for number in range(64)]
    assert len(set(names)) == len(names)
    assert all(name.isalpha() for name in names)
