"""classifierd beside a mount that is written to: it may come, go and hang as it likes."""

import json
import mmap
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from bench import disturbed
from tests.integration.pairs import BIN, Mount, Pair, run, until

START_SECONDS = 30.0
BLOCK = 4096


# A single candidate serves from its first epoch on; several must first have copied.
ALONE = '[daemon]\ncandidates = ["life-table"]\n'


@contextmanager
def daemon(mount: Mount, state: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """classifierd on a mount; whatever happened to it, it is gone afterwards."""
    config = state / "config.toml"
    config.write_text(ALONE)
    words = classifierd("run", mount.point, "--state", state, "--config", config)
    with (state / "log").open("ab") as log:
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


class Writer(threading.Thread):
    """Appends to a log, overwrites a table, makes and deletes files, and checks what it reads."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.over = threading.Event()
        self.error: Exception | None = None
        self.rounds = 0

    def run(self) -> None:
        """Until it is told to stop; what goes wrong is kept."""
        try:
            while not self.over.is_set():
                self._round(self.rounds)
                self.rounds += 1
        except Exception as error:
            self.error = error

    def _round(self, number: int) -> None:
        page = number.to_bytes(8, "little") * (BLOCK // 8)
        with (self.folder / f"app.{number // 64 % 4}.log").open(
            "ab" if number % 64 else "wb"
        ) as log:
            log.write(page[: BLOCK // 4])
            log.flush()
            os.fsync(log.fileno())
        with (self.folder / "table").open("r+b" if number else "w+b") as table:
            place = number * 7919 % 1024 * BLOCK
            table.seek(place)
            table.write(page * 4)
            table.seek(place)
            assert table.read(4 * BLOCK) == page * 4
        passing = self.folder / f"passing-{number % 8}"
        passing.write_bytes(page * 16)
        (self.folder / f"passing-{(number + 1) % 8}").unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop, and raise what went wrong."""
        self.over.set()
        self.join(60)
        assert not self.is_alive(), "it hangs"
        if self.error is not None:
            raise self.error


@pytest.fixture
def writer(mounted: Mount) -> Iterator[Writer]:
    """A program at work in the mount."""
    one = Writer(mounted.point)
    one.start()
    yield one
    one.over.set()
    one.join(60)


def wait_attached(state: Path, times: int) -> None:
    """Wait until the log says so for so many daemons."""
    log = state / "log"
    until(lambda: log.read_text().count("attached: ") >= times, START_SECONDS, "the daemon")


def wait_written(writer: Writer, rounds: int) -> None:
    """Wait for so many rounds in all."""
    until(lambda: writer.rounds >= rounds, 60, "writes")


def classifierd(*words: str | Path) -> list[str | Path]:
    """Give the command line."""
    return [sys.executable, "-m", "classifierd", *words]


def assert_unharmed(found: disturbed.Disturbed, times: int) -> None:
    """Each daemon spoke, and nothing of what it said or left unsaid did harm."""
    assert found.status["model"]["refused"] == 0
    assert_all_is_well(found, times)


def assert_all_is_well(found: disturbed.Disturbed, times: int) -> None:
    """As assert_unharmed(), but each corrupted model may have been refused."""
    assert found.daemons == times + 1
    assert found.tables > times, "each new one speaks"
    assert found.status["model"]["refused"] <= found.corruptions
    assert not found.status["degraded_read_only"]
    assert found.status["checksum_errors"] == 0


@pytest.mark.usefixtures("needs_fuse")
def test_killed_stopped_and_restarted_nobody_waits_for_it(tmp_path: Path) -> None:
    """No I/O error, no call that waits for it, and each new one is heard."""
    work = tmp_path / "disturbed"
    found = disturbed.run(work, times=3, rounds=600, warm_up_tables=4, stop_seconds=3)
    assert_unharmed(found, 3)
    # A call that waited for a stopped daemon would wait until it is killed.
    assert found.latencies_ms.max() < found.shortest_stop_ms / 2


@pytest.mark.long
@pytest.mark.usefixtures("needs_fuse")
def test_killed_stopped_and_restarted_it_costs_nobody_anything(tmp_path: Path) -> None:
    """Hardly more is copied, and no more calls are slow than beside one that is left alone."""
    found = disturbed.run(tmp_path / "disturbed", times=50, rounds=1000)
    alone = disturbed.run(tmp_path / "alone", times=0, rounds=found.rounds)
    assert_unharmed(found, 50)
    assert found.waf <= 1.05 * alone.waf
    assert found.beyond(2 * alone.p99_ms) < 0.02
    assert found.latencies_ms.max() < 2000


@pytest.mark.usefixtures("needs_fuse")
def test_models_with_wrong_bytes_harm_nobody(tmp_path: Path) -> None:
    """They are refused with a reason, or are models; the next one of a daemon is adopted."""
    found = disturbed.run(
        tmp_path / "disturbed", times=3, rounds=600, warm_up_tables=4, corrupt=True
    )
    assert found.corruptions == 3
    assert_all_is_well(found, 3)


@pytest.mark.long
@pytest.mark.usefixtures("needs_fuse")
def test_killed_stopped_and_corrupted_a_thousand_times(tmp_path: Path) -> None:
    """No I/O error, no wrong byte, and no call that waits for a daemon or a model."""
    found = disturbed.run(
        tmp_path / "disturbed", times=1000, rounds=1000, stop_seconds=1, corrupt=True
    )
    assert found.corruptions == 1000
    assert found.status["model"]["refused"] > 100
    assert_all_is_well(found, 1000)
    assert found.latencies_ms.max() < 2000


def test_a_second_one_is_told_so(mounted: Mount, tmp_path: Path) -> None:
    """EBUSY while the first lives; the first is not disturbed."""
    with daemon(mounted, tmp_path) as first:
        wait_attached(tmp_path, 1)
        second = run(*classifierd("run", mounted.point, "--once"), check=False)
        assert second.returncode == 75, second.stderr
        assert first.poll() is None


def test_explain_says_where_a_file_goes_and_why(
    mounted: Mount, writer: Writer, tmp_path: Path
) -> None:
    """Its vStream, who wrote it, and each kind of write with what is expected of it."""
    wait_written(writer, 200)
    writer.stop()
    run(*classifierd("run", mounted.point, "--once", "--state", tmp_path))
    words = classifierd("explain", mounted / "app.0.log")
    said = json.loads(run(*words, "--state", tmp_path, "--json").stdout)
    assert said["source"] == "context"
    assert "python" in said["label"]
    assert said["shapes"], "what was learned of it"
    lifetimes = [each["lifetime_bytes"] for each in said["shapes"]]
    assert all(lifetime >= 0 for lifetime in lifetimes)
    text = run(*words, "--state", tmp_path).stdout
    assert "pStream" in text
    assert "overwriting" in text
    without = run(*words).stdout
    assert "--state DIR" in without


def test_explain_and_plot_take_the_mount_point(
    mounted: Mount, writer: Writer, tmp_path: Path
) -> None:
    """The table in use and the largest vStreams; with the daemon's memory, each kind of write."""
    wait_written(writer, 200)
    writer.stop()
    before = run(*classifierd("explain", mounted.point)).stdout
    assert "no model of classifierd is in use" in before
    with daemon(mounted, tmp_path):
        wait_attached(tmp_path, 1)
        until(lambda: mounted.status()["model"]["adopted"], START_SECONDS, "a table")
        words = classifierd("explain", mounted.point, "--state", tmp_path)
        assert re.search(r"model \d+ \(life-table\) of the daemon decides", run(*words).stdout)
    run(*classifierd("run", mounted.point, "--once", "--state", tmp_path))
    told = json.loads(run(*words, "--json").stdout)
    assert any("python" in each["label"] for each in told["vstreams"])
    assert any(each["shapes"] for each in told["vstreams"]), "what was learned"
    picture = tmp_path / "lifetimes.svg"
    run(*classifierd("plot", mounted.point, "-o", picture))
    assert b"<svg" in picture.read_bytes()


def test_status_metrics_and_log_name_the_model_that_is_adopted(
    mounted: Mount, writer: Writer, tmp_path: Path
) -> None:
    """Kind and generation, as the filesystem has them."""
    status = words_of(mounted)
    assert "model none: no model of classifierd is in use" in status
    wait_written(writer, 200)
    writer.stop()
    config = tmp_path / "config.toml"
    config.write_text(ALONE)
    log = run(*classifierd("run", mounted.point, "--once", "--config", config)).stderr
    generation = mounted.status()["model"]["generation"]
    assert f"model {generation} (life-table) adopted: learned from " in log
    assert f"model life-table, table {generation} of classifierd" in words_of(mounted)
    told = run(*classifierd("metrics", mounted.point, "--once")).stdout
    assert f'streamfs_model_info{{kind="life-table",mountpoint="{mounted.point}"}} 1.0' in told
    assert f"model {generation} (life-table) adopted" in mounted.log.read_text()


def test_a_logistic_model_tells_pages_of_one_file_apart(
    make_pair: Callable[..., Pair], tmp_path: Path
) -> None:
    """A table has one pStream for both: only the place and the age of a page differ."""
    pair = make_pair(size="128M")
    pair.mkfs()
    mount = pair.mount()
    path = mount / "table"
    path.write_bytes(bytes(FILE_PAGES * BLOCK))
    overwrite(path, hot=36_000, cold=4_000)
    config = tmp_path / "config.toml"
    config.write_text('[daemon]\ncandidates = ["logistic"]\n')
    run(*classifierd("run", mount.point, "--once", "--config", config))
    until(lambda: mount.status()["model"]["kind"] == "logistic", 10, "the adoption")
    written = [pages_by_pstream(mount)]
    for hot, cold in ((500, 0), (0, 500)):
        overwrite(path, hot, cold)
        written.append(pages_by_pstream(mount))
    hot_pages, cold_pages = written[1] - written[0], written[2] - written[1]
    assert hot_pages.sum() >= 500
    assert cold_pages.sum() >= 500
    assert hot_pages.argmax() != cold_pages.argmax()


def test_a_mount_without_a_daemon_places_as_the_last_one_with_it(
    make_pair: Callable[..., Pair], tmp_path: Path
) -> None:
    """The model that the daemon stored tells places of one file apart; without it nothing does."""
    pair = make_pair(size="128M")
    pair.mkfs()
    mount = pair.mount("model=none")
    (mount / "table").write_bytes(bytes(FILE_PAGES * BLOCK))
    overwrite(mount / "table", hot=36_000, cold=4_000)
    state, config = tmp_path / "state", tmp_path / "config.toml"
    config.write_text('[daemon]\ncandidates = ["logistic"]\n')
    run(*classifierd("run", mount.point, "--once", "--config", config, "--state", state))
    until(lambda: mount.status()["model"]["kind"] == "logistic", 10, "the adoption")
    hot, cold = hot_and_cold(mount)
    assert hot != cold
    mount.unmount()
    stored = next(state.glob("*.model"))
    assert stored.stat().st_mode & 0o777 == 0o600

    mount = pair.mount(f"model={state}")
    model = mount.status()["model"]
    assert model["stored"]
    assert model["kind"] == "logistic"
    assert f"model {model['generation']} (logistic) adopted from {stored}" in mount.log.read_text()
    source = f"model logistic, table {model['generation']} of classifierd, from its state directory"
    assert source in words_of(mount)
    assert hot_and_cold(mount) == (hot, cold)
    # A daemon that comes later publishes a model of its own.
    run(*classifierd("run", mount.point, "--once", "--config", config, "--state", state))
    until(lambda: not mount.status()["model"]["stored"], 10, "the adoption")
    mount.unmount()

    mount = pair.mount(f"model={tmp_path / 'none'}")
    assert not mount.status()["model"]["adopted"]
    hot, cold = hot_and_cold(mount)
    assert hot == cold


def test_a_damaged_stored_model_costs_a_line_and_no_mount(
    make_pair: Callable[..., Pair], tmp_path: Path
) -> None:
    """The line names file and reason; a missing file costs nothing."""
    pair = make_pair(size="128M")
    pair.mkfs()
    bad = tmp_path / "bad.model"
    bad.write_bytes(b"no model")
    mount = pair.mount(f"model={bad}")
    line = f"the stored placement model is not used: {bad}: not as long as a stored model"
    assert mount.log.read_text().count(line) == 1
    assert not mount.status()["model"]["adopted"]
    mount.unmount()
    mount = pair.mount(f"model={tmp_path / 'missing'}", "placement=auto")
    assert mount.log.read_text().count("stored placement model") == 1


FILE_PAGES, HOT_PAGES = 8192, 256


def hot_and_cold(mount: Mount) -> tuple[int, int]:
    """Return the pStreams that most pages of the table's first MiB go to, and of the rest."""
    path = mount / "table"
    overwrite(path, hot=2000, cold=0)  # from then on their ages are known
    written = [pages_by_pstream(mount)]
    for hot, cold in ((500, 0), (0, 500)):
        overwrite(path, hot, cold)
        written.append(pages_by_pstream(mount))
    most = [int((after - before).argmax()) for before, after in pairwise(written)]
    return most[0], most[1]


def pages_by_pstream(mount: Mount) -> npt.NDArray[np.int64]:
    """Return the pages that the device was sent on each pStream."""
    pages = np.zeros(8, np.int64)
    for row in mount.status()["device"]["streams"]:
        pages[row["stream"]] = row["written_bytes"] // BLOCK
    return pages


def overwrite(path: Path, hot: int, cold: int) -> None:
    """Overwrite so many random pages of the first MiB and of the rest, in a random order."""
    rng = np.random.default_rng(hot)
    pages = np.concatenate(
        [rng.integers(0, HOT_PAGES, hot), rng.integers(HOT_PAGES, FILE_PAGES, cold)]
    )
    page = mmap.mmap(-1, BLOCK)
    file = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        for each in rng.permutation(pages).tolist():
            os.pwrite(file, page, each * BLOCK)
        os.fsync(file)
    finally:
        os.close(file)


def words_of(mount: Mount) -> str:
    """Give the text of streamctl status with single spaces."""
    return " ".join(run(BIN / "streamctl", "status", mount.point).stdout.split())


def test_explain_refuses_what_lies_elsewhere(tmp_path: Path) -> None:
    """With a sentence and the exit code of what is not there."""
    other = tmp_path / "file"
    other.touch()
    for path, sentence in ((other, "on no streamfs"), (tmp_path / "none", "No such file")):
        done = run(*classifierd("explain", path), check=False)
        assert done.returncode == 66
        assert sentence in done.stderr


def test_a_filesystem_made_anew_is_not_taken_for_the_old_one(pair: Pair, tmp_path: Path) -> None:
    """Each filesystem's knowledge is its own, though devices and mount point are the same."""
    mount = pair.mount()
    one = Writer(mount.point)
    one.start()
    wait_written(one, 100)
    one.stop()
    run(*classifierd("run", mount.point, "--once", "--state", tmp_path))
    mount.unmount()
    pair.mkfs("-f")
    mount = pair.mount()
    run(*classifierd("run", mount.point, "--once", "--state", tmp_path))
    assert len(list(tmp_path.glob("*.life"))) == 2
