"""Idle time on a mount: the emulated SSD collects garbage in it, by its own counters, and stops."""

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run, until

FILE_BYTES = 160 << 20
BLOCK = 4096


def ssd(pair: Pair) -> dict[str, Any]:
    """What the emulated SSD counts, whoever holds it."""
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


def age(path: Path, rewrites: int = 30_000) -> bytes:
    """Fill the SSD and rewrite blocks here and there, until it has to collect garbage."""
    draw = random.Random(1)
    content = bytearray(FILE_BYTES)
    with path.open("r+b" if path.exists() else "w+b", buffering=0) as file:
        for at in range(0, FILE_BYTES, 1 << 20):
            os.pwrite(file.fileno(), content[at : at + (1 << 20)], at)
        os.fsync(file.fileno())
        for _ in range(4):
            for _ in range(rewrites // 4):
                at = draw.randrange(FILE_BYTES // BLOCK) * BLOCK
                page = draw.randbytes(8) * (BLOCK // 8)
                content[at : at + BLOCK] = page
                os.pwrite(file.fileno(), page, at)
            os.fsync(file.fileno())
    return bytes(content)


@pytest.fixture
def small(make_pair: Callable[..., Pair]) -> Pair:
    """A pair whose SSD is soon full."""
    one = make_pair(size="192M")
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
    assert mounted.status()["idle"]["slowest_stop_us"] < 10_000


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
