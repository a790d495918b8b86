"""ssd-sim as people meet it: images, statistics in use, traces, ext4 and XFS on a served SSD."""

import contextlib
import gzip
import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
SSD_SIM = BIN / "ssd-sim"
MIB = 1 << 20
USAGE, FOREIGN, NO_DEVICE, NOT_EMPTY, BUSY = 64, 65, 66, 73, 75


class Result(NamedTuple):
    """What a program shows of itself."""

    status: int
    out: str
    err: str


def run(*command: str | Path, timeout: float = 120) -> Result:
    """Run a command to its end."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def ssd_sim(*arguments: str | Path) -> Result:
    """Run ssd-sim."""
    return run(SSD_SIM, *arguments)


def must(*command: str | Path) -> str:
    """Run a command that has to succeed; its output."""
    done = run(*command)
    assert done.status == 0, f"{command}: {done.out}{done.err}"
    return done.out


def info(image: Path) -> dict[str, Any]:
    """Statistics of an image."""
    shown: dict[str, Any] = json.loads(must(SSD_SIM, "info", image, "--json"))
    return shown


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A small SSD."""
    path = tmp_path / "ssd"
    must(SSD_SIM, "create", path, "--size", "512M", "--streams", "4", "--op", "0.1")
    return path


# Images


def test_info_shows_a_new_ssd(image: Path) -> None:
    shown = info(image)
    assert shown["user_bytes"] == 512 * MIB
    assert shown["physical_bytes"] >= 512 * MIB * 1.1
    assert shown["waf"] is None
    assert shown["written_bytes"] == shown["nand_bytes"] == shown["erases"] == 0
    assert len(shown["streams"]) == shown["stream_count"] == 4
    assert set(shown["latency_us"]) == {"p50", "p99", "p999"}
    assert "512.00 MiB" in must(SSD_SIM, "info", image)


def test_create_replaces_only_when_told_to(image: Path) -> None:
    uuid = info(image)["uuid"]
    refused = ssd_sim("create", image, "--size", "1G")
    assert refused.status == NOT_EMPTY
    assert "--force" in refused.err
    assert info(image)["uuid"] == uuid
    must(SSD_SIM, "create", image, "--size", "1G", "--force")
    assert info(image)["uuid"] != uuid


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "1G", "--op", "0"],
        ["--size", "1G", "--op", "-0.5"],
        ["--size", "1G", "--streams", "0"],
        ["--size", "1G", "--streams", "1000"],
        ["--size", "4M", "--streams", "64"],
        ["--size", "1G", "--pages-per-block", "7"],
        ["--size", "0"],
        ["--size", "100000T"],
        ["--size", "large"],
        [],
    ],
)
def test_an_impossible_ssd_is_an_error_and_leaves_nothing(
    tmp_path: Path, options: list[str]
) -> None:
    done = ssd_sim("create", tmp_path / "ssd", *options)
    assert done.status == USAGE
    assert done.err.strip()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_an_image_is_refused(tmp_path: Path, image: Path) -> None:
    assert ssd_sim("info", tmp_path / "none").status == NO_DEVICE
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"hello" * 10000)
    assert ssd_sim("info", foreign).status == FOREIGN
    os.truncate(image, 100_000)
    done = ssd_sim("info", image)
    assert done.status == FOREIGN
    assert "truncated" in done.err


# Traces


def write_logs(path: Path) -> None:
    """Make a trace of four logs, overwritten at different speeds, with the right tags."""
    random.seed(1)
    cursor = [0] * 4
    with gzip.open(path, "wt") as file:
        file.write("ts_us,op,offset_bytes,length_bytes,vstream,context,request,pstream\n")
        for i in range(150_000):
            log = random.choices(range(4), [70, 20, 8, 2])[0]
            offset = (log * 4096 + cursor[log] % 4096) * 4096
            cursor[log] += 1
            file.write(f"{i},W,{offset},4096,{log},prog{log},{i},{log}\n")


def replay(trace: Path, *options: str) -> dict[str, Any]:
    """Replay a trace; what came of it."""
    shown: dict[str, Any] = json.loads(
        must(SSD_SIM, "replay", trace, "--json", "--warmup", "0.3", *options)
    )
    return shown


def test_replay_tells_what_separation_is_worth(tmp_path: Path) -> None:
    trace = tmp_path / "logs.csv.gz"
    write_logs(trace)
    small = ["--pages-per-block", "64"]
    wafs = {name: replay(trace, "--placement", name, *small) for name in ("nosep", "sepgc", "tags")}
    assert wafs["tags"]["waf"] < 1.05 < 1.1 < wafs["sepgc"]["waf"] < wafs["nosep"]["waf"]
    assert wafs["tags"]["host_pages"] == 105_000
    best = replay(trace, "--placement", "oracle", "--edges", "best", *small)
    assert best["waf"] == min(
        replay(trace, "--placement", "oracle", "--edges", edges, *small)["waf"]
        for edges in ("log2", "quantile", "threshold")
    )


def test_replay_takes_the_flash_of_a_given_device(tmp_path: Path) -> None:
    trace = tmp_path / "logs.csv.gz"
    write_logs(trace)
    shown = replay(trace, "--physical-pages", str(64 * 300), "--pages-per-block", "64")
    assert shown["physical_pages"] == 64 * 300
    assert shown["effective_spare"] == pytest.approx(64 * 300 / shown["peak_live_pages"] - 1)


def test_replay_names_what_is_wrong(tmp_path: Path) -> None:
    trace = tmp_path / "bad.csv"
    trace.write_text("ts_us,op,offset_bytes,length_bytes\n1,W,0,4096\n2,W,0,zebra\n")
    done = ssd_sim("replay", trace)
    assert done.status == FOREIGN
    assert "line 3" in done.err
    assert "zebra" in done.err
    trace.write_text("1,W,0,4096\n")
    done = ssd_sim("replay", trace, "--placement", "magic")
    assert done.status == USAGE
    assert "sepbit" in done.err
    assert ssd_sim("replay", trace, "--size", "lots").status == USAGE


# Serving


def require_serving() -> None:
    """Skip where a served SSD cannot be mounted or looped."""
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse")
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    if not Path("/dev/loop-control").exists():
        pytest.skip("no loop devices")


@contextlib.contextmanager
def served(image: Path) -> Iterator[Path]:
    """Serve an image; the file it appears as."""
    mountpoint = image.parent / f"{image.name}.served"
    mountpoint.mkdir()
    process = subprocess.Popen([SSD_SIM, "serve", "-f", image, mountpoint])
    try:
        deadline = time.monotonic() + 10
        while not (mountpoint / "ssd.img").exists():
            assert process.poll() is None, "ssd-sim serve ended"
            assert time.monotonic() < deadline, "ssd-sim serve does not come up"
            time.sleep(0.02)
        yield mountpoint / "ssd.img"
    finally:
        run("umount", mountpoint)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        run("umount", "-l", mountpoint)
        mountpoint.rmdir()


def holder_of(image: Path) -> int:
    """Process that serves an image: the one with it open."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(fd.readlink() == image for fd in (process / "fd").iterdir()):
                return int(process.name)
    pytest.fail(f"nobody holds {image}")


@contextlib.contextmanager
def looped(file: Path) -> Iterator[Path]:
    """Put a loop device with direct I/O on a file."""
    device = Path(must("losetup", "--find", "--show", "--direct-io=on", file).strip())
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@contextlib.contextmanager
def mounted(device: Path, at: Path) -> Iterator[Path]:
    """Mount a filesystem that discards."""
    at.mkdir()
    must("mount", "-o", "discard", device, at)
    try:
        yield at
    finally:
        done = run("umount", at)
        if done.status != 0:
            run("umount", "-l", at)
        at.rmdir()
        assert done.status == 0, done.err


def check(filesystem: str, device: Path) -> None:
    """Assert that a filesystem is whole."""
    if filesystem == "ext4":
        must("e2fsck", "-f", "-n", device)
    else:
        must("xfs_repair", "-n", device)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_a_filesystem_lives_on_a_served_ssd(filesystem: str, image: Path, tmp_path: Path) -> None:
    require_serving()
    if shutil.which(f"mkfs.{filesystem}") is None:
        pytest.skip(f"no mkfs.{filesystem}")
    content = random.Random(3).randbytes(40 * MIB)
    with served(image) as file:
        with looped(file) as device:
            assert must("losetup", "-n", "-O", "DIO", device).strip() == "1"
            must(f"mkfs.{filesystem}", "-q", device)
            with mounted(device, tmp_path / "fs") as fs:
                for i in range(3):
                    (fs / f"file{i}").write_bytes(content)
                (fs / "small").mkdir()
                for i in range(200):
                    (fs / "small" / str(i)).write_bytes(content[i : i + 5000])
                must("sync", "-f", fs)
                before = info(image)
                (fs / "file1").unlink()
                deadline = time.monotonic() + 20  # XFS frees unlinked files in the background
                while info(image)["live_bytes"] > before["live_bytes"] - 38 * MIB:
                    assert time.monotonic() < deadline, "freed blocks are not trimmed"
                    must("sync", "-f", fs)
                    must("fstrim", fs)
            check(filesystem, device)
        with looped(file) as device, mounted(device, tmp_path / "fs") as fs:
            assert (fs / "file2").read_bytes() == content
            assert (fs / "small" / "199").read_bytes() == content[199:5199]
    shown = info(image)
    assert shown["written_bytes"] >= 120 * MIB
    assert shown["trimmed_bytes"] >= 40 * MIB
    assert shown["flushes"] > 0
    assert all(stream["written_bytes"] == 0 for stream in shown["streams"][1:])


def test_statistics_can_be_read_and_reset_while_in_use(image: Path) -> None:
    require_serving()
    with served(image) as file:
        with file.open("r+b", buffering=0) as ssd:
            ssd.write(mmap.mmap(-1, MIB))  # aligned: direct I/O goes out in whole pages
            shown = info(image)
            assert shown["written_bytes"] == shown["live_bytes"] == MIB
            assert shown["waf"] == 1
            assert shown["latency_us"]["p50"] > 0
            must(SSD_SIM, "reset-stats", image)
            assert info(image)["written_bytes"] == 0
            ssd.write(mmap.mmap(-1, 4096))
            assert info(image)["written_bytes"] == 4096
        assert ssd_sim("create", image, "--size", "1G", "--force").status == BUSY
        again = image.parent / "again"
        again.mkdir()
        assert ssd_sim("serve", image, again).status == BUSY
    assert info(image)["written_bytes"] == 4096


def test_writes_of_any_size_and_place_read_back(image: Path) -> None:
    require_serving()
    chance = random.Random(5)
    model = bytearray(MIB)
    with served(image) as file, file.open("r+b", buffering=0) as ssd:
        for _ in range(300):
            start = chance.randrange(len(model) - 20_000)
            piece = chance.randbytes(chance.randrange(1, 20_000))
            ssd.seek(start)
            assert ssd.write(piece) == len(piece)
            model[start : start + len(piece)] = piece
        ssd.seek(0)
        assert ssd.read(len(model)) == model
        ssd.seek(512 * MIB)
        assert ssd.read(10) == b""
        with pytest.raises(OSError, match="No space"):
            ssd.write(b"beyond")


def test_a_killed_server_loses_nothing_that_was_written(image: Path) -> None:
    require_serving()
    with served(image) as file:
        writer = file.open("r+b", buffering=0)
        for i in range(200):
            writer.seek(i % 50 * 65536)
            writer.write(bytes([i]) * 65536)
        os.kill(holder_of(image), signal.SIGKILL)
        with contextlib.suppress(OSError):
            writer.close()  # nobody answers any more
    with served(image) as file, file.open("rb") as ssd:
        for i in range(150, 200):
            ssd.seek(i % 50 * 65536)
            assert ssd.read(65536) == bytes([i]) * 65536
    assert info(image)["damaged_pages"] == 0


def test_serving_goes_to_the_background_and_ends_with_the_mount(image: Path) -> None:
    require_serving()
    mountpoint = image.parent / "background"
    mountpoint.mkdir()
    try:
        must(SSD_SIM, "serve", image, mountpoint)
        assert (mountpoint / "ssd.img").stat().st_size == 512 * MIB
        server = holder_of(image)
    finally:
        run("umount", mountpoint)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{server}/exe").exists():
        assert time.monotonic() < deadline, "still serving after the unmount"
        time.sleep(0.02)
