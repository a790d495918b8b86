"""File data and fsync on mounts: what a target is held against, and what is said without one."""

from pathlib import Path

import pytest
from bench.mounts import OVER_IO_URING
from bench.programs.place import ProgramError
from bench.suites import fsync, io
from bench.table import Row, unavailable

SEQUENTIAL, RANDOM = io.JOBS[0], io.JOBS[-1]


def named(rows: list[Row]) -> dict[str, Row]:
    return {one.name: one for one in rows}


def speeds(**of: float) -> list[dict[str, io.Figure]]:
    """Return one round of them."""
    return [{name: io.Figure(speed) for name, speed in of.items()}]


def test_sequential_access_has_to_reach_the_lesser_of_two() -> None:
    rounds = speeds(streamfs=90, limit_fs=100, ext4=1000)
    held = lesser_of_two(rounds)
    assert held.value == pytest.approx(1.0)
    assert held.met
    held = lesser_of_two(speeds(streamfs=90, limit_fs=1000, ext4=100))
    assert held.value == pytest.approx(90 / 95)
    assert held.met is False


def lesser_of_two(rounds: list[dict[str, io.Figure]]) -> Row:
    [held] = [one for one in io.rows(SEQUENTIAL, rounds, "") if "÷ min(" in one.name]
    return held


def test_every_job_is_held_against_the_server_that_does_nothing() -> None:
    for job in io.JOBS:
        found = named(list(io.rows(job, speeds(streamfs=84, limit_fs=100, ext4=1), "")))
        assert found[f"{job.name}: streamfs ÷ limit_fs"].met is False


def test_the_servers_cpu_time_is_told_of_those_that_are_processes() -> None:
    rounds = [{"streamfs": io.Figure(1, 70), "limit_fs": io.Figure(1, 40), "ext4": io.Figure(1)}]
    found = named(list(io.rows(SEQUENTIAL, rounds, "")))
    told = {name: one.value for name, one in found.items() if "CPU" in name}
    assert set(told.values()) == {40, 70}


def test_random_access_is_held_against_ext4() -> None:
    found = named(list(io.rows(RANDOM, speeds(streamfs=49, limit_fs=1, ext4=100), "")))
    assert found[f"{RANDOM.name}: streamfs ÷ ext4"].met is False


def test_checksums_may_cost_a_twentieth_of_sequential_speed() -> None:
    for speed, met in ((94, False), (96, True)):
        [each] = speeds(streamfs=speed, limit_fs=100, ext4=10)
        each[io.UNCHECKED] = io.Figure(100)
        found = named(list(io.rows(SEQUENTIAL, [each], "")))
        assert found[f"{SEQUENTIAL.name}: streamfs ÷ {io.UNCHECKED}"].met is met


def test_a_mount_is_held_against_ext4_and_io_uring_against_the_device() -> None:
    where = "META class synced"
    names = [name for kind in fsync.KINDS for name in kind.side_by_side]
    slower = where + OVER_IO_URING
    each = {
        "ext4": fsync.Figures(100, 0, 0),
        where: fsync.Figures(150, 1, 1),
        slower: fsync.Figures(90, 1, 1),
    }
    work = {name: dict(each) for name in names}
    work[fsync.MANY][where] = fsync.Figures(449, 0.3, 0.3)
    found = named(list(fsync.rows([work])))
    for name in names:
        held = name in fsync.HELD
        assert found[f"{name}: ÷ ext4, {where}"].met is (True if held else None)
        assert found[f"{name}: ÷ ext4, {slower}"].met is None
        assert found[f"{name}: io_uring ÷ /dev/fuse"].met is False
    assert found[f"{fsync.WRITERS} writers ÷ 1, {where}"].met is False
    for where in ("ext4", slower):
        assert found[f"{fsync.WRITERS} writers ÷ 1, {where}"].met is None


def test_an_intent_log_is_held_against_ext4_and_against_none() -> None:
    ours, none = fsync.PERSISTENT, fsync.NO_LOG
    each = {
        "ext4": fsync.Figures(100, 2, 0),
        ours: fsync.Figures(96, 0.5, 3),
        none: fsync.Figures(100, 2, 1),
    }
    found = named(
        list(fsync.rows([{name: dict(each) for name in (fsync.MANY, fsync.ONE, fsync.LARGE)}]))
    )
    assert found[f"{fsync.ONE}: ÷ ext4, {ours}"].met is False
    assert found[f"{fsync.ONE}: ÷ ext4, {none}"].met is None
    assert found[f"{fsync.ONE}: device flushes, {ours}"].met is False
    assert found[f"{fsync.ONE}: fences of META, {ours}"].met is False
    assert found[f"{fsync.ONE}: fences of META, {none}"].met is None
    assert found[f"{fsync.LARGE}: ÷ no intent log, {ours}"].met is False
    assert found[f"{fsync.LARGE}: ÷ ext4, {ours}"].met is None
    assert found[f"{fsync.ONE}: ÷ no intent log, {ours}"].met is None


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
