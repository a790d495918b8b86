"""The emulated SSD served as a file: loop devices, ext4 and XFS, discards, idle work, real time."""

import contextlib
import mmap
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.integration.simulated import (
    BUSY,
    MIB,
    SSD_SIM,
    USAGE,
    check,
    holder_of,
    info,
    looped,
    mounted,
    must,
    require_serving,
    run,
    served,
    ssd_sim,
)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_a_filesystem_lives_on_a_served_ssd(filesystem: str, image: Path, tmp_path: Path) -> None:
    require_serving()
    if shutil.which(f"mkfs.{filesystem}") is None:
        pytest.skip(f"no mkfs.{filesystem}")
    content = random.Random(3).randbytes(40 * MIB)
    with served(image) as file, looped(file) as device:
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
    with served(image) as file, looped(file) as device:
        with mounted(device, tmp_path / "fs") as fs:
            assert not (fs / "file1").exists()
            assert (fs / "file2").read_bytes() == content
            for i in range(200):
                assert (fs / "small" / str(i)).read_bytes() == content[i : i + 5000]
        check(filesystem, device)
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


@pytest.mark.parametrize("ftl", ["page-map", "hybrid", "log-block"])
def test_a_killed_server_loses_nothing_that_was_written(ftl: str, tmp_path: Path) -> None:
    require_serving()
    image = tmp_path / "ssd"
    must(SSD_SIM, "create", image, "--size", "64M", "--ftl", ftl)
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


def granularity(device: Path) -> int:
    """Return what a block device says it can discard at least."""
    return int(Path(f"/sys/block/{device.name}/queue/discard_granularity").read_text())


@pytest.fixture
def coarse(tmp_path: Path) -> Path:
    """An SSD that maps 16 KiB at a time."""
    path = tmp_path / "coarse"
    must(SSD_SIM, "create", path, "--size", "512M", "--op", "0.1", "--map-unit", "16k")
    return path


def test_a_loop_device_discards_in_map_units(image: Path, coarse: Path) -> None:
    require_serving()
    for ssd, unit in ((image, 4096), (coarse, 16384)):
        with served(ssd) as file, looped(file) as device:
            assert granularity(device) == unit


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_what_a_filesystem_discards_is_freed_in_coarse_units(
    filesystem: str, coarse: Path, tmp_path: Path
) -> None:
    require_serving()
    with served(coarse) as file, looped(file) as device:
        must(f"mkfs.{filesystem}", "-q", device)
        with mounted(device, tmp_path / "fs") as fs:
            must("sync", "-f", fs)
            before = info(coarse)
            for i in range(400):
                (fs / str(i)).write_bytes(bytes([1 + i % 255]) * 36_864)  # nine blocks
            must("sync", "-f", fs)
            assert info(coarse)["live_bytes"] > before["live_bytes"] + 13 * MIB
            for i in range(400):
                (fs / str(i)).unlink()
            deadline = time.monotonic() + 20
            while info(coarse)["live_bytes"] > before["live_bytes"] + 2 * MIB:
                assert time.monotonic() < deadline, info(coarse)
                must("sync", "-f", fs)
                must("fstrim", fs)
        check(filesystem, device)


def test_a_map_unit_punched_in_pieces_is_freed(coarse: Path) -> None:
    require_serving()

    def punch(file: Path, page: int, pages: int) -> None:
        place = ["-o", str(page * 4096), "-l", str(pages * 4096)]
        must("fallocate", "--punch-hole", *place, file)

    with served(coarse) as file:
        with file.open("r+b", buffering=0) as ssd:
            ssd.write(random.Random(1).randbytes(32768))
        for page in (1, 3, 0):
            punch(file, page, 1)
        shown = info(coarse)
        assert shown["live_bytes"] == 32768
        punch(file, 2, 1)
        assert info(coarse)["live_bytes"] == 16384
        punch(file, 100, 3)  # nothing was ever there
        after = info(coarse)
        assert after["live_bytes"] == 16384
        assert after["nand_bytes"] == shown["nand_bytes"]
        assert file.read_bytes()[:16384] == bytes(16384)


def test_a_damaged_page_is_an_error_and_no_other_page_is(image: Path) -> None:
    require_serving()
    chance = random.Random(7)
    pages = [chance.randbytes(4096) for _ in range(512)]
    with served(image) as file, file.open("r+b", buffering=0) as ssd:
        ssd.write(b"".join(pages))
        with image.open("r+b") as flash, mmap.mmap(flash.fileno(), 0) as raw:
            at = raw.find(pages[300])
            raw[at + 99] ^= 1
        for number, page in enumerate(pages):
            ssd.seek(number * 4096)
            if number == 300:
                with pytest.raises(OSError, match="Input/output error"):
                    ssd.read(4096)
            else:
                assert ssd.read(4096) == page
        assert info(image)["media_errors"] == 1
        ssd.seek(300 * 4096)
        ssd.write(pages[300])
        ssd.seek(300 * 4096)
        assert ssd.read(4096) == pages[300]


def age(file: Path) -> None:
    """Fill a small SSD, then overwrite parts of its blocks, so that some hold few live pages."""
    chance = random.Random(9)
    with file.open("r+b", buffering=0) as ssd:
        size = file.stat().st_size
        for start in range(0, size, MIB):
            ssd.seek(start)
            ssd.write(bytes(MIB))
        for _ in range(12 * size // MIB):
            ssd.seek(chance.randrange(size // 4096 - 24) * 4096)
            ssd.write(bytes(24 * 4096))


def test_idle_time_collects_garbage_only_when_told_to(tmp_path: Path) -> None:
    require_serving()
    image = tmp_path / "ssd"
    must(SSD_SIM, "create", image, "--size", "64M", "--op", "0.5")
    with served(image) as file:
        age(file)
        time.sleep(0.5)
        assert info(image)["idle_gc_bytes"] == 0
        assert info(image)["urgency"] != "none"
    with served(image, "--idle-gc", "20"):
        deadline = time.monotonic() + 20
        while info(image)["idle_gc_bytes"] == 0:
            assert time.monotonic() < deadline, info(image)
            time.sleep(0.05)
    shown = info(image)
    assert shown["gc_bytes"] >= shown["idle_gc_bytes"] > 0
    assert "copied while idle" in must(SSD_SIM, "info", image)


def test_real_time_writes_no_faster_than_the_dies_program(tmp_path: Path) -> None:
    require_serving()
    image = tmp_path / "ssd"
    must(SSD_SIM, "create", image, "--preset", "consumer-tlc", "--scale", "1/256")
    nand = info(image)["nand"]
    assert nand["cell"] == "TLC"
    dies = nand["channels"] * nand["chips"] * nand["dies"]
    factor, size = dies * 2, 64 * MIB
    bytes_a_second = dies * nand["wordline_pages"] * 4096 / (2e-3 * factor)
    in_buffer = dies * 3 * nand["wordline_pages"] * 4096

    def seconds_to_write(*options: str) -> float:
        with served(image, *options) as file, file.open("r+b", buffering=0) as ssd:
            started = time.monotonic()
            for _ in range(size // MIB):
                ssd.write(bytes(MIB))
            return time.monotonic() - started

    slow = seconds_to_write(f"--real-time={factor}")
    assert (size - in_buffer) / bytes_a_second <= slow < 4 * size / bytes_a_second
    assert min(seconds_to_write() for _ in range(3)) < slow / 2


@pytest.mark.parametrize("option", ["--real-time=0", "--real-time=-1", "--idle-gc=0"])
def test_impossible_times_are_refused(image: Path, tmp_path: Path, option: str) -> None:
    assert ssd_sim("serve", image, tmp_path, option).status == USAGE
