"""Idle time on a mount: the emulated SSD collects garbage in it, by its own counters, and stops."""

import json
import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

FILE_BYTES = 80 << 20
BLOCK = 4096
STOP_US_MOST = 10_000


def ssd(pair: Pair) -> dict[str, Any]:
    """The counters of the emulated SSD, whichever program holds it."""
    told: dict[str, Any] = json.loads(run(BIN / "ssd-sim", "info", pair.image, "--json").stdout)
    counted: dict[str, Any] = told.get("device", told)
    return counted


def control(mounted: Mount, *words: str) -> dict[str, Any]:
    """A streamctl command's JSON."""
    name, *options = words
    told: dict[str, Any] = json.loads(
        run(BIN / "streamctl", name, *options, mounted.point, "--json").stdout
    )
    return told


def rewrite(path: Path, content: bytearray, blocks: int) -> None:
    """Change blocks here and there, on the device too."""
    draw = random.Random(blocks)
    with path.open("r+b", buffering=0) as file:
        for number in range(blocks):
            at = draw.randrange(FILE_BYTES // BLOCK) * BLOCK
            content[at : at + BLOCK] = draw.randbytes(8) * (BLOCK // 8)
            os.pwrite(file.fileno(), content[at : at + BLOCK], at)
            if number % 3000 == 2999:  # or the kernel keeps what is written twice
                os.fdatasync(file.fileno())
        os.fsync(file.fileno())


def age(path: Path) -> bytearray:
    """Fill the SSD and rewrite blocks, until it has to collect garbage; what the file holds."""
    content = bytearray(FILE_BYTES)
    path.write_bytes(content)
    rewrite(path, content, 15_000)
    return content


@pytest.fixture
def small(make_pair: Callable[..., Pair]) -> Pair:
    """A pair whose SSD is soon full."""
    one = make_pair(size="96M")
    if one.given:
        pytest.skip("the counters of an emulated SSD are looked at")
    one.mkfs()
    return one


def test_the_ssd_collects_in_idle_time_and_stops_when_programs_come_back(small: Pair) -> None:
    mounted = small.mount("idle_work=always", "placement=off")
    content = age(mounted / "file")
    busy = ssd(small)
    assert busy["urgency"] in ("high", "critical"), busy
    until(lambda: ssd(small)["idle_gc_bytes"] > 0, 20, "garbage collection in idle time")
    until(lambda: mounted.status()["idle"]["state"] == "rested", 20, "nothing left worth doing")
    rested = ssd(small)
    assert rested["urgency"] in ("none", "low")  # low: what is left holds too much that lives
    assert rested["free_blocks"] > busy["free_blocks"]
    assert rested["erases"] > busy["erases"]
    assert rested["nand_bytes"] <= 1.05 * busy["nand_bytes"]
    status = mounted.status()["idle"]
    assert status["copied_bytes"] >= rested["idle_gc_bytes"]
    assert status["periods"] >= 1
    assert (mounted / "file").read_bytes() == content
    mounted.unmount()
    small.assert_sound()


def test_no_work_is_done_while_programs_are_at_it(small: Pair) -> None:
    mounted = small.mount("idle_work=always", "placement=off", "direct_io")
    age(mounted / "file")
    page = bytes(BLOCK)
    with (mounted / "file").open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), page, 0)
        time.sleep(0.2)
        before = ssd(small)["idle_gc_bytes"]
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            os.pwrite(file.fileno(), page, 0)
            time.sleep(0.05)
        assert ssd(small)["idle_gc_bytes"] == before


def stopped_in_us(mounted: Mount) -> int:
    """How long after a request idle work went on that it came amid."""
    where = os.getxattr(mounted.point, "user.streamfs.control").rstrip(b"\0")
    with (
        (mounted / "file").open("r+b", buffering=0) as file,
        socket.socket(socket.AF_UNIX) as control_socket,
    ):
        control_socket.connect(where)
        answers = control_socket.makefile("r")

        def interrupted() -> bool:
            control_socket.sendall(b'{"op": "status"}\n')
            idle = json.loads(answers.readline())["idle"]
            if idle["state"] == "working":
                os.pwrite(file.fileno(), bytes(BLOCK), 0)
            return bool(idle["interrupted"] > 0)

        until(interrupted, 20, "idle time that ends in the middle of work")
    return int(mounted.status()["idle"]["slowest_stop_us"])


def test_a_request_ends_the_work_within_ten_milliseconds(small: Pair) -> None:
    filled = small.mount("idle_work=off", "placement=off")
    age(filled / "file")
    filled.unmount()
    # On a busy machine a thread may wait for a processor longer than that: the best of some tries.
    stops = [STOP_US_MOST]
    while min(stops) >= STOP_US_MOST and len(stops) <= 4:
        # At half a flash's pace, so that a request comes in the middle.
        mounted = small.mount("idle_work=always", "placement=off", "direct_io", "real_time=2")
        stops.append(stopped_in_us(mounted))
        mounted.unmount()
    assert 0 < min(stops) < STOP_US_MOST, stops


def test_bursts_with_idle_work_between_cost_few_nand_bytes(
    make_pair: Callable[..., Pair],
) -> None:
    after = {}
    for when in ("off", "always"):
        pair = make_pair(when, size="96M")
        if pair.given:
            pytest.skip("the counters of an emulated SSD are looked at")
        pair.mkfs()
        mounted = pair.mount(f"idle_work={when}", "placement=off")
        content = age(mounted / "file")
        for _ in range(3):
            time.sleep(1)
            rewrite(mounted / "file", content, 3000)
        after[when] = ssd(pair)
        assert (mounted / "file").read_bytes() == content
        mounted.unmount()
    assert after["off"]["idle_gc_bytes"] == 0
    assert after["always"]["idle_gc_bytes"] > 0
    assert after["always"]["nand_bytes"] <= 1.05 * after["off"]["nand_bytes"]


def test_off_is_off_and_what_is_asked_for_is_done(small: Pair) -> None:
    mounted = small.mount("idle_work=off", "placement=off")
    age(mounted / "file")
    time.sleep(1.5)
    assert ssd(small)["idle_gc_bytes"] == 0
    assert mounted.status()["idle"]["state"] == "off"
    done = control(mounted, "maintain", "--seconds", "20")
    assert done["finished"], done
    assert done["copied_bytes"] == ssd(small)["idle_gc_bytes"] > 0
    assert ssd(small)["urgency"] in ("none", "low")


def test_preparing_for_power_off_keeps_its_deadline_and_frees_blocks(small: Pair) -> None:
    mounted = small.mount("idle_work=off", "placement=off")
    content = age(mounted / "file")
    begun = time.monotonic()
    control(mounted, "prepare-poweroff", "--deadline", "0")
    assert time.monotonic() - begun < 5
    before = ssd(small)
    assert control(mounted, "prepare-poweroff", "--deadline", "20")["finished"]
    after = ssd(small)
    assert after["free_blocks"] > before["free_blocks"]
    assert mounted.status()["idle"]["poweroffs_prepared"] >= 2
    mounted.kill()
    again = small.mount()
    assert (again / "file").read_bytes() == content
    # Without systemd nothing is being shut down.
    told = run(BIN / "streamctl", "prepare-poweroff", "--if-stopping", again.point)
    assert told.stdout == ""


def test_trim_says_how_much_is_free_and_keeps_what_is_not(small: Pair) -> None:
    mounted = small.mount()
    (mounted / "kept").write_bytes(b"k" * (20 << 20))
    (mounted / "gone").write_bytes(b"g" * (20 << 20))
    (mounted / "gone").unlink()
    trimmed = control(mounted, "trim")["trimmed_bytes"]
    free = os.statvfs(mounted.point)
    assert 0.5 * free.f_bfree * free.f_frsize < trimmed <= free.f_bfree * free.f_frsize
    run("sh", "-c", "echo 3 > /proc/sys/vm/drop_caches")
    assert (mounted / "kept").read_bytes() == b"k" * (20 << 20)
    mounted.unmount()
    small.assert_sound()
    read_only = small.mount("ro")
    refused = run(BIN / "streamctl", "trim", read_only.point, check=False)
    assert refused.returncode != 0
    assert "read-only" in refused.stderr
