"""advise records what ext4 writes to a device, by tracefs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from classifierd import blocktrace, recording, spacemap
from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE
from classifierd.owners import vstreams


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A device and where its ext4 is mounted."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("needs root and mkfs.ext4")
    try:
        blocktrace.tracing_folder()
    except OSError as error:
        pytest.skip(str(error))
    image, mount = tmp_path / "image", tmp_path / "mnt"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    made = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True)
    device = Path(made.stdout.decode().strip())
    try:
        subprocess.run(["mount", device, mount], check=True)
        try:
            yield device, mount
        finally:
            subprocess.run(["umount", mount], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def wait_recording(recorder: subprocess.Popen[str]) -> None:
    """Wait until the kernel tells it of writes."""
    instance = blocktrace.tracing_folder() / f"instances/streamfs-advise-{recorder.pid}"
    enable, deadline = instance / "events/block/block_rq_issue/enable", time.monotonic() + 60
    while not enable.exists() or enable.read_text().strip() != "1":
        assert recorder.poll() is None
        assert time.monotonic() < deadline, "it does not record"
        time.sleep(0.01)


def write_synced(path: Path, size: int) -> None:
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ext4_writes_is_recorded(
    ext4: tuple[Path, Path], tmp_path: Path, ended_by: signal.Signals
) -> None:
    device, mount = ext4
    trace = tmp_path / "trace.csv"
    assert blocktrace.mounted_at(device) == mount
    assert blocktrace.used_bytes(mount) > 0

    (mount / "day_12").mkdir()
    write_synced(mount / "old.jpg", 4 << 20)  # there before, and overwritten where it lies
    words = [sys.executable, "-m", "classifierd", "advise", str(device), "--seconds", "120"]
    words += ["--record", str(trace), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as recorder:
        try:
            wait_recording(recorder)
            write_synced(mount / "old.jpg", 4 << 20)
            write_synced(mount / "day_12/000017.log", 8 << 20)
        finally:
            recorder.send_signal(ended_by)
        said, _ = recorder.communicate(timeout=60)
    assert recorder.returncode == 0
    told = json.loads(said)
    assert told["capacity_bytes"] == 64 << 20
    read = recording.read(trace)
    assert read is not None
    known = vstreams(read.names)
    assert [(v.ext, v.dir) for v in known] == [("", ""), ("jpg", ""), ("log", "day_#")]
    written, owner = read.requests.length_bytes, read.requests.owner
    data = ~(read.requests.log | read.requests.trim)
    assert written[data & (owner == known[1].number)].sum() == 4 << 20
    assert written[data & (owner == known[2].number)].sum() == 8 << 20
    assert 12 << 20 <= written[data].sum() < 14 << 20
    held = spacemap.held_pages(mount)
    assert read.disk.held is not None
    assert held is not None
    assert read.disk.capacity_bytes == 64 << 20
    assert 0 < read.disk.used_bytes < blocktrace.used_bytes(mount)
    assert 4 << 8 <= int(read.disk.held[:, 1].sum()) <= int(held[:, 1].sum()) - (7 << 8)
    assert read.requests.log.any()
    assert not list(blocktrace.tracing_folder().glob(f"instances/streamfs-advise-{recorder.pid}"))


def test_ext4_says_where_its_files_are(
    ext4: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, mount = ext4
    before = spacemap.held_pages(mount)
    (mount / "file").write_bytes(os.urandom(8 << 20))
    subprocess.run(["sync", "-f", mount], check=True)
    whole = spacemap.held_pages(mount)
    assert before is not None
    assert whole is not None
    assert (8 << 20) <= int(whole[:, 1].sum() - before[:, 1].sum()) * 4096 < (9 << 20)
    assert (whole.sum(axis=1) * 4096 <= blocktrace.capacity_bytes(device)).all()
    monkeypatch.setattr(spacemap, "_ROWS_AT_ONCE", 2)  # asked again and again
    again = spacemap.held_pages(mount)
    assert again is not None
    assert again.tolist() == whole.tolist()
    assert spacemap.held_pages(Path("/proc")) is None


def test_a_trace_that_cannot_be_kept_is_said_before_anything_is_recorded(
    ext4: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["advise", str(ext4[0]), "--seconds", "600", "--record", str(tmp_path / "no/where")]
    assert main(words) == EXIT_NO_DEVICE
    assert "No such file" in caplog.text


def test_tracefs_is_looked_for_before_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(blocktrace, "_ROOTS", (tmp_path,))
    monkeypatch.setattr(Path, "is_block_device", lambda _: True)
    monkeypatch.setattr(blocktrace, "mounted_at", lambda _: pytest.fail("it was too early"))
    assert main(["advise", str(tmp_path / "disk")]) == EXIT_NO_DEVICE
    assert "tracefs is not there" in caplog.text
