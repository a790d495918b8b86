"""File data and fsync on mounts: what a target is held against, and what is said without one."""

from pathlib import Path

import pytest
from bench.demo.place import ProgramError
from bench.mounts import OVER_IO_URING
from bench.suites import fsync, io
from bench.table import Row, unavailable

SEQUENTIAL, RANDOM = io.JOBS[0], io.JOBS[-1]


def named(rows: list[Row]) -> dict[str, Row]:
    return {one.name: one for one in rows}


def test_sequential_access_has_to_reach_the_lesser_of_two() -> None:
    rounds = [{"streamfs": 90.0, "limit_fs": 100.0, "ext4": 1000.0}]
    found = named(list(io.rows(SEQUENTIAL, rounds, "META class synced")))
    [held] = [one for one in found.values() if one.target]
    assert held.value == pytest.approx(1.0)
    assert held.met
    rounds = [{"streamfs": 90.0, "limit_fs": 1000.0, "ext4": 100.0}]
    [held] = [one for one in io.rows(SEQUENTIAL, rounds, "") if one.target]
    assert held.value == pytest.approx(90 / 95)
    assert held.met is False


def test_random_access_is_held_against_ext4() -> None:
    rounds = [{"streamfs": 49.0, "limit_fs": 1.0, "ext4": 100.0}]
    [held] = [one for one in io.rows(RANDOM, rounds, "") if one.target]
    assert held.name.endswith("÷ ext4")
    assert held.met is False


def test_checksums_may_cost_a_twentieth_of_sequential_speed() -> None:
    rounds = [{"streamfs": 94.0, io.UNCHECKED: 100.0, "limit_fs": 100.0, "ext4": 10.0}]
    found = named(list(io.rows(SEQUENTIAL, rounds, "")))
    assert found[f"{SEQUENTIAL.name}: streamfs ÷ {io.UNCHECKED}"].met is False
    rounds[0]["streamfs"] = 96.0
    found = named(list(io.rows(SEQUENTIAL, rounds, "")))
    assert found[f"{SEQUENTIAL.name}: streamfs ÷ {io.UNCHECKED}"].met


def test_only_appends_and_sqlite_are_held_against_ext4() -> None:
    where = "META class synced"
    names = [name for kind in fsync.KINDS for name in kind.side_by_side]
    slower = where + OVER_IO_URING  # asked for by nobody who wants to be fast
    each = {"ext4": (100.0, 0.0), where: (150.0, 1.0), slower: (90.0, 1.0)}
    work = {name: dict(each) for name in names}
    work[fsync.MANY][where] = (449.0, 0.3)
    found = named(list(fsync.rows([work])))
    for name in names:
        held = name in (fsync.ONE, fsync.DELETE, fsync.WAL)
        assert found[f"{name}: ÷ ext4, {where}"].met is (True if held else None)
        assert found[f"{name}: ÷ ext4, {slower}"].met is None
    assert found[f"{fsync.WRITERS} writers ÷ 1, {where}"].met is False
    for where in ("ext4", slower):
        assert found[f"{fsync.WRITERS} writers ÷ 1, {where}"].met is None


def test_work_whose_program_is_missing_has_rows_that_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(fsync, "postgres_bin", raise_no_postgres)
    rows = named(list(fsync.not_measured()))
    assert set(rows) == {fsync.FILLSYNC, fsync.CLIENT, fsync.MANY_CLIENTS}
    assert "db_bench" in rows[fsync.FILLSYNC].unit
    assert rows[fsync.CLIENT] == unavailable(fsync.CLIENT, "no PostgreSQL")


def raise_no_postgres() -> Path:
    message = "no PostgreSQL"
    raise ProgramError(message)
