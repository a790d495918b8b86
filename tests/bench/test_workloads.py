"""Work that waits for fsync: each is really done and counted, and leaves no server behind."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from bench import workloads
from bench.loop import not_installed
from bench.suites import fsync
from bench.system import BenchError


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="streamfs-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def do(work: workloads.Work, folder: Path, side_by_side: int, seconds: float) -> workloads.Done:
    with ExitStack() as stack:
        done = work(stack, folder)(side_by_side, seconds)
    assert done.count > 0
    assert done.a_second > 0
    return done


def skip_if(reason: str | None) -> None:
    if reason:
        pytest.skip(reason)


def working_in(folder: Path) -> list[str]:
    """Return the command lines that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:  # it has ended
            continue
        if str(folder) in words:
            found.append(words.replace("\0", " "))
    return found


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_commits_are_counted_one_by_one(journal: str, tmp_path: Path) -> None:
    def work(stack: ExitStack, folder: Path) -> workloads.Measured:
        return workloads.commits(stack, folder, journal)

    done = do(work, tmp_path, 1, 0.05)
    with closing(sqlite3.connect(tmp_path / "commits.db")) as database:
        assert database.execute("select count(*) from t").fetchone() == (done.count,)


def test_fillsync_counts_what_is_in_rocksdbs_log(tmp_path: Path) -> None:
    skip_if(not_installed(["db_bench"]))
    done = do(workloads.fillsync, tmp_path, 1, 0.05)
    [log] = (tmp_path / "rocksdb").glob("*.log")
    assert log.stat().st_size > done.count * 100


def test_mailers_leave_as_many_mails_as_there_were(tmp_path: Path) -> None:
    before: set[tuple[str, int]] = set()

    def work(stack: ExitStack, folder: Path) -> workloads.Measured:
        measured = workloads.mail(stack, folder)
        before.update((path.name, path.stat().st_size) for path in folder.iterdir())
        return measured

    do(work, tmp_path, 3, 0.2)
    after = {(path.name, path.stat().st_size) for path in tmp_path.iterdir()}
    assert len(before) == len(after) == workloads.MAILS_AT_FIRST
    assert before != after


def test_transactions_of_one_and_of_several_clients_are_counted(folder: Path) -> None:
    skip_if(fsync.no_postgres())
    with ExitStack() as stack:
        measured = workloads.pgbench(stack, folder)
        one, several = measured(1, 1), measured(4, 1)
        assert working_in(folder)
    assert one.count > 0
    assert several.count > 0
    assert one != several
    assert not working_in(folder)


def test_a_failure_says_why_and_leaves_no_server(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_if(fsync.no_postgres())
    monkeypatch.setattr(workloads, "PGBENCH_SCALE", 0)
    with ExitStack() as stack:
        with pytest.raises(BenchError, match=r"pgbench failed.*scale"):
            workloads.pgbench(stack, folder)
        assert working_in(folder)
    assert not working_in(folder)


def test_a_program_that_says_nothing_is_no_figure() -> None:
    assert workloads.last(r"tps = (\d+)", "tps = 1\ntps = 2\n") == ("2",)
    with pytest.raises(BenchError, match="tps"):
        workloads.last(r"tps = (\d+)", "nothing")
