"""The daemon against a filesystem of a socket and two memfds."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from classifierd import _core, config, state
from classifierd.cli import main
from classifierd.command_line import EXIT_BUSY, EXIT_NO_DEVICE
from classifierd.contest import Contest, Device
from classifierd.control import Collection, ControlClient, ControlError
from classifierd.daemon import Daemon, Session
from classifierd.knowledge import Identity, Knowledge
from classifierd.records import from_bytes
from classifierd.savings import Savings
from classifierd.wishes import Wishes
from fake_filesystem import UUID, FakeFilesystem, ModelArea, Ring
from writes import logs, logs_and_files

if TYPE_CHECKING:
    from _typeshed import TraceFunction

TAIL = _core.shape_of(1, 0, 1)  # of a log, rewritten soon
BODY = _core.shape_of(8, 2, _core.AGE_OLD)


def write_logs(fs: FakeFilesystem, pages: int = 120_000) -> None:
    """A workload of log tails, as telemetry of one vStream with a name."""
    raw, vstreams = logs_and_files(pages, 1, 32_768)
    fs.streams = [
        {"vstream": v.number, "source": v.source, "name": v.name, "comm": v.comm}
        | {"ext": v.ext, "dir": v.dir}
        for v in vstreams
    ]
    fs.ring.produce(from_bytes(_core.as_telemetry(raw)))


@pytest.fixture
def table_alone(tmp_path: Path) -> list[str]:
    """A configuration with which the life table serves from the start."""
    path = tmp_path / "table.toml"
    path.write_text('[daemon]\ncandidates = ["life-table"]\n')
    return ["--config", str(path)]


def wait_for(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_the_device_tells_how_it_collects_garbage(
    filesystem: FakeFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem.device = {"gc_mode": "shared", "spare": 0.28, "erase_unit_blocks": 512}
    filesystem.device["victim"] = "cost-benefit"
    with ControlClient(filesystem.path) as client:
        attachment = client.attach()
        attachment.close()
    assert attachment.collection == Collection("shared", 0.28, 512, "cost-benefit")
    seen: list[Device] = []

    def spy(identity: Identity, device: Device, *more: object) -> Knowledge:
        seen.append(device)
        return Knowledge(identity, device, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("classifierd.daemon.Knowledge", spy)
    assert main(["run", "/mnt", "--once"]) == 0
    assert seen == [Device(1 << 18, 8, 0.28, 512, "shared", "cost-benefit")], (
        "what the shadow devices imitate"
    )
    nonsense: list[object] = [
        7,
        {"gc_mode": [], "spare": -1.0, "erase_unit_blocks": 1 << 40, "victim": []},
    ]
    for said in nonsense:
        assert Collection.parse(said) == Collection()


def newer(model: ModelArea, generation: int) -> bool:
    return model.active > generation


def test_once_learns_what_the_ring_holds_and_publishes_it(
    filesystem: FakeFilesystem,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    table_alone: list[str],
) -> None:
    write_logs(filesystem)
    caplog.set_level(logging.INFO)
    words = ["run", "/mnt", "--once", "--state", str(tmp_path / "state"), *table_alone]
    assert main(words) == 0
    table = filesystem.model.checked_table(pstreams=8)
    assert table[1, TAIL] < table[1, BODY], "the log's tail dies before its body"
    assert table[4].max() > table[1, BODY]
    assert filesystem.model.heartbeat > 0
    assert filesystem.model.clock_pages() > 0
    assert "postgres:pg_wal" in caplog.text
    assert "chunks, class 1" in caplog.text
    assert state.path_of(tmp_path / "state", UUID).exists()


def test_a_restart_begins_where_the_last_run_ended(
    filesystem: FakeFilesystem,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    table_alone: list[str],
) -> None:
    caplog.set_level(logging.INFO)
    write_logs(filesystem)
    arguments = ["run", "/mnt", "--once", "--state", str(tmp_path), *table_alone]
    assert main(arguments) == 0
    before = filesystem.model.checked_table(8).copy()
    filesystem.ring.set_head(0)  # A remount: nothing in the ring, other numbers.
    filesystem.ring.set_clock(987_654)
    for row in filesystem.streams:
        row["vstream"] = int(str(row["vstream"])) + 100
    assert main(arguments) == 0
    assert "restored" in caplog.text
    after = filesystem.model.checked_table(8)
    assert (after[101] == before[1]).mean() > 0.7, "all shapes that were written"
    assert after[101, TAIL] < after[101, BODY]
    assert filesystem.model.clock_pages() == 987_654, "it speaks for every vStream born by then"


def a_contest() -> Contest:
    return Contest(1 << 16, Device(1 << 12, 8), candidates=("life-table", "nosep"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:0],
        lambda data: b"\0" * len(data),
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: np.random.default_rng(len(data)).bytes(len(data)),
        lambda data: data[:8] + (_core.crc32c(b"junk")).to_bytes(4, "little") + b"junk",
    ],
)
def test_a_damaged_state_means_a_cold_start_and_a_line(
    damage: Callable[[bytes], bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    raw, vstreams = logs(50_000, 1, 8192)
    contest = a_contest()
    contest.know(vstreams)
    contest.feed(from_bytes(_core.as_telemetry(raw)))
    contest.end_epoch()
    state.save(tmp_path, UUID, contest)
    path = state.path_of(tmp_path, UUID)
    path.write_bytes(damage(path.read_bytes()))
    cold = a_contest()
    assert not state.load(tmp_path, UUID, cold)
    assert "starting cold" in caplog.text
    assert len(cold.learner.life.cells()[0]) == 0


def test_another_filesystems_state_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state.save(tmp_path, UUID, a_contest())
    other = bytes(16)
    state.path_of(tmp_path, UUID).rename(state.path_of(tmp_path, other))
    assert not state.load(tmp_path, other, a_contest())
    assert "another filesystem" in caplog.text


def test_garbage_in_the_ring_separates_nothing(filesystem: FakeFilesystem) -> None:
    rng = np.random.default_rng(10)
    noise = rng.integers(0, 256, 5000 * 40, dtype=np.uint8)
    filesystem.ring.produce(from_bytes(noise))
    filesystem.streams = [{"vstream": -1}, {"vstream": "x"}, {"vstream": True}, {}]
    filesystem.space = {"data_blocks": "many", "free_blocks": None}
    assert main(["run", "/mnt", "--once"]) == 0
    assert set(filesystem.model.checked_table(8).ravel().tolist()) == {7}


def test_one_pstream_is_enough(filesystem: FakeFilesystem, table_alone: list[str]) -> None:
    filesystem.pstreams = 1
    write_logs(filesystem)
    assert main(["run", "/mnt", "--once", *table_alone]) == 0
    assert filesystem.model.checked_table(1).max() == 0


def test_a_second_daemon_is_told_that_it_is_one(filesystem: FakeFilesystem) -> None:
    filesystem.busy = True
    assert main(["run", "/mnt", "--once"]) == EXIT_BUSY
    with ControlClient(filesystem.path) as client, pytest.raises(ControlError) as refused:
        client.attach()
    assert refused.value.errno == errno.EBUSY


def test_whoever_is_turned_away_hears_why(tmp_path: Path) -> None:
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        with ControlClient(path) as client:
            peer, _ = listener.accept()
            peer.sendall(b'{"ok": false, "errno": 87, "error": "user 9 holds 8 connections"}\n')
            peer.close()
            with pytest.raises(ControlError, match="user 9 holds 8") as refused:
                client.attach()
    assert refused.value.errno == errno.EUSERS


@pytest.mark.parametrize("once", [(), ("--once",)])
@pytest.mark.parametrize("name", [".", "nothing"])
def test_no_filesystem_is_said_with_its_exit_code(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, once: tuple[str, ...]
) -> None:
    assert main(["run", str(tmp_path / name), *once]) == EXIT_NO_DEVICE
    assert "no streamfs is mounted there" in caplog.text


def test_the_daemon_follows_the_filesystem_away_and_back(
    tmp_path: Path, ring: Ring, model: ModelArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "control"
    monkeypatch.setattr("classifierd.control.os.getxattr", lambda *_: bytes(path))
    settings = config.DaemonSettings(poll_ms=5, retry_ms=20, candidates=("life-table",))
    daemon = Daemon(Path("/mnt"), config.Config(daemon=settings), tmp_path / "state")
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        for _ in range(2):
            fs = FakeFilesystem(path, ring, model)
            assert fs.attached.wait(10)
            before = model.active
            write_logs(fs, pages=60_000)
            wait_for(partial(newer, model, before))
            fs.close()
    finally:
        daemon.stop()
        thread.join(10)
    assert not thread.is_alive()
    model.checked_table(8)
    assert state.path_of(tmp_path / "state", UUID).exists()


def test_an_idle_daemon_stays_attached_and_beats(filesystem: FakeFilesystem) -> None:
    daemon = Daemon(Path("/mnt"), config.Config(daemon=config.DaemonSettings(poll_ms=5)))
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        assert filesystem.attached.wait(10)
        wait_for(lambda: filesystem.model.heartbeat > 0)
        first = filesystem.model.heartbeat
        wait_for(lambda: filesystem.model.heartbeat > first, seconds=3)
        assert filesystem.attachments == 1
    finally:
        daemon.stop()
        thread.join(10)
    assert not thread.is_alive()


def test_at_sighup_the_configuration_is_read_again_and_what_is_known_stays(
    filesystem: FakeFilesystem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "c.toml"
    text = '[learner]\nepoch_pages = {}\n[daemon]\npoll_ms = 5\ncandidates = ["life-table"]\n'
    path.write_text(text.format(10_000))
    kept = tmp_path / "state"
    daemon = Daemon(Path("/mnt"), config.read(path), kept, partial(config.read, path))
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        wait_for(lambda: "epochs of 10000 pages" in caplog.text)
        write_logs(filesystem, pages=60_000)
        wait_for(partial(newer, filesystem.model, 0))
        path.write_text(text.format(20_000))
        daemon.reload()
        wait_for(lambda: "epochs of 20000 pages" in caplog.text)
        assert state.path_of(kept, UUID).exists()
        path.write_text("[daemon]\npoll_ms = 0\n")
        daemon.reload()
        wait_for(lambda: "going on as before" in caplog.text)
        assert f"{path}:1: [daemon]" in caplog.text
        wait_for(lambda: caplog.text.count("epochs of 20000 pages") == 2)
    finally:
        daemon.stop()
        thread.join(10)
    assert not thread.is_alive()


def test_a_signal_may_come_within_any_line_of_the_daemon(tmp_path: Path) -> None:
    settings = config.Config(daemon=config.DaemonSettings(retry_ms=1))

    def run(first: int) -> int:
        """A daemon to reload at this line that it executes, and to end 300 lines later."""
        daemon = Daemon(tmp_path, settings, None, lambda: settings)
        lines = 0

        def trace(_frame: FrameType, event: str, _: object) -> TraceFunction:
            nonlocal lines
            lines += event == "line"
            if lines in (first, first + 1):
                daemon.reload()
            if lines in (first + 300, first + 301):
                daemon.stop()
            return trace

        def traced() -> None:
            sys.settrace(trace)
            daemon.run()

        thread = threading.Thread(target=traced, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), f"it waits for itself: reload at line {first} of its run"
        return lines

    # Its loop has fewer lines than that, those of the libraries included.
    assert all(run(first) > 300 for first in range(1, 200))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_a_long_wait_at_once(tmp_path: Path, number: int) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[daemon]\nretry_ms = 30000\n")
    program = [
        sys.executable,
        "-m",
        "classifierd",
        "run",
        "--wait",
        str(tmp_path),
        "--config",
        str(path),
    ]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "trying again" in process.stderr.readline()
        begun = time.monotonic()
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            assert "read again" in process.stderr.readline()
        process.send_signal(number)
        try:
            assert process.wait(60) == 0
            assert time.monotonic() - begun < 25
        finally:
            process.kill()


def test_the_interpreter_itself_ends_the_wait_at_a_signal() -> None:
    wishes, heard = Wishes(), list[float]()

    def handler() -> None:
        heard.append(time.monotonic())
        wishes.end = True  # and wakes nobody

    before = signal.getsignal(signal.SIGUSR1)
    wishes.hear({signal.SIGUSR1: handler})
    sends = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        sends.start()
        assert wishes.wait(20)
        assert time.monotonic() - heard[0] < 10
    finally:
        sends.join()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGUSR1, before)


def test_a_reload_waits_without_a_word_until_the_filesystem_sees_the_old_ones_end(
    filesystem: FakeFilesystem, caplog: pytest.LogCaptureFixture
) -> None:
    filesystem.hang_up_seconds = 0.3
    settings = config.Config(daemon=config.DaemonSettings(poll_ms=5, retry_ms=60_000))
    daemon = Daemon(Path("/mnt"), settings, None, lambda: settings)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        wait_for(lambda: filesystem.attachments == 1)
        daemon.reload()
        wait_for(lambda: filesystem.attachments == 2, seconds=30)
        assert sum(each["op"] == "attach" for each in filesystem.asked) > 2, "it was refused"
        assert "attached already" not in caplog.text
    finally:
        daemon.stop()
        thread.join(10)
    assert not thread.is_alive()


def test_what_a_new_table_names_no_more_is_released_once_it_is_adopted(
    filesystem: FakeFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [{0, 1, 2, 7}, None, {0, 2}, {0, 1}]
    released: list[list[int]] = []
    monkeypatch.setattr("classifierd.daemon.publish", lambda *_: tables.pop(0))
    monkeypatch.setattr(Savings, "release", lambda _, streams: released.append(sorted(streams)))
    with ControlClient(filesystem.path) as client:
        attachment = client.attach()
        session = Session(client, attachment, config.Config(), None)
        attachment.close()
        for _ in range(4):
            session.end_epoch()
            session.tell_savings()
            assert not released, "the filesystem may not have the table yet"
        monkeypatch.setattr("classifierd.daemon._ADOPTED_SECONDS", 0.0)
        for _ in range(2):
            session.tell_savings()
    assert released == [[2, 7]], "once, and not what is named again"


def test_another_daemon_that_came_between_is_told_of(
    filesystem: FakeFilesystem, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("classifierd.daemon._HANG_UP_SECONDS", 0.2)
    settings = config.Config(daemon=config.DaemonSettings(poll_ms=5, retry_ms=20))
    daemon = Daemon(Path("/mnt"), settings, None, lambda: settings)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        wait_for(lambda: filesystem.attachments == 1)
        filesystem.busy = True
        daemon.reload()
        wait_for(lambda: "attached already" in caplog.text, seconds=30)
        filesystem.busy = False
        wait_for(lambda: filesystem.attachments == 2, seconds=30)
    finally:
        daemon.stop()
        thread.join(10)
    assert not thread.is_alive()


def test_sighup_does_not_end_the_daemon(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "classifierd", "run", "--wait", str(tmp_path)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "trying again" in process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        assert "read again" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_sigterm_ends_the_daemon_cleanly_even_with_no_filesystem(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "classifierd", "run", "--wait", str(tmp_path)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "trying again" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
