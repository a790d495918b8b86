"""A program's results are the same with and without the preload library."""

from pathlib import Path

import pytest
from tests.integration.libstream.harness import (
    HELPERS,
    SQL,
    STREAM_RUN,
    FakeMount,
    Result,
    compile_c,
    run,
    with_and_without,
)


def both(tmp: Path, *command: str | Path, env: dict[str, str]) -> list[Result]:
    """The same, which leave as many files behind."""
    results = with_and_without(tmp, env, *command)
    plain = sorted(p.name for p in (tmp / "plain").iterdir() if "XXXXXX" not in p.name)
    preloaded = sorted(p.name for p in (tmp / "preload").iterdir())
    assert len(plain) == len(preloaded)
    return results


def test_every_entry_point_behaves_as_without_the_library(helpers: Path, tmp_path: Path) -> None:
    plain, preloaded = both(tmp_path, helpers / "entry_points", "{}", env={})
    assert plain.status == 0
    assert plain.out.count("\n") > 55
    assert preloaded == plain


@pytest.mark.parametrize("error", [5, 11, 12, 13, 22, 28, 30, 38, 95, 110])
def test_a_hint_that_fails_never_fails_the_program(
    helpers: Path, mount: FakeMount, tmp_path: Path, error: int
) -> None:
    """EIO, ENOMEM, ENOSPC, EROFS and others: only the kernel's own answers reach the program."""
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path), "FAKE_STREAMFS_ERRNO": str(error)}
    program = helpers / "entry_points"
    plain, preloaded = both(tmp_path, program, "{}", env=env)
    assert plain.status == 0
    assert preloaded == plain
    assert any(asked.command == "query" for asked in mount.asked())


def test_a_mount_changes_nothing_but_the_two_repairs(
    helpers: Path, mount: FakeMount, tmp_path: Path
) -> None:
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path)}
    plain, preloaded = both(tmp_path, helpers / "entry_points", "{}", env=env)
    differences = {
        line.split(":")[0]
        for line, other in zip(plain.out.splitlines(), preloaded.out.splitlines(), strict=True)
        if line != other
    }
    assert differences <= {
        "F_SET_FILE_RW_HINT",
        "F_SET_FILE_RW_HINT nowhere",
        "F_GET_FILE_RW_HINT",
    }
    assert "F_SET_FILE_RW_HINT nowhere: -1 errno 14 " in preloaded.out


@pytest.mark.parametrize("where", ["elsewhere", "mount"])
def test_threads_signals_and_children_open_files_as_without(
    helpers: Path, mount: FakeMount, tmp_path: Path, where: str
) -> None:
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path) if where == "mount" else "/none"}
    env["PROCESSES_FOLDER"] = str(mount.path)
    plain, preloaded = both(tmp_path, helpers / "processes", "{}", env=env)
    assert plain.status == 0
    assert preloaded == plain
    labels = mount.labels()
    expected = {f"thread-{thread}-{i}-journal" for thread in (*range(64), 1000) for i in range(50)}
    expected |= {"vfork-journal", "signal-journal", "exec-journal", "early-journal"}
    assert set(labels) == (expected if where == "mount" else set())
    assert set(labels.values()) <= {"sqlite-journal"}


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_sqlite_gives_the_same_answers(mount: FakeMount, tmp_path: Path, mode: str) -> None:
    sql = SQL.replace("{mode}", mode)
    for place in ("/none", str(tmp_path)):
        work = tmp_path / place.strip("/").replace("/", "-")
        work.mkdir()
        env = mount.env | {"FAKE_STREAMFS_MOUNT": place}
        plain, preloaded = both(work, "sqlite3", "{}/a.db", sql, env=env)
        assert plain.status == 0
        assert plain.out.endswith("ok\n")
        assert preloaded == plain
        assert (work / "plain/a.db").read_bytes() == (work / "preload/a.db").read_bytes()


def test_programs_the_library_cannot_enter_run_as_ever(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text('#include <stdio.h>\nint main(void) { return fopen("a-journal", "w") == 0; }')
    static = compile_c(tmp_path / "static", source, "-static")
    assert run(STREAM_RUN, static, cwd=tmp_path) == Result(0, "", "")
    assert run(STREAM_RUN, "env", "-i", static, cwd=tmp_path) == Result(0, "", "")


def test_a_program_with_the_address_sanitizer_runs_as_ever(tmp_path: Path) -> None:
    program = tmp_path / "asan"
    compile_c(program, HELPERS / "entry_points.c", "-fsanitize=address")
    plain, preloaded = both(tmp_path, program, "{}", env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert plain.status == 0
    assert preloaded == plain
