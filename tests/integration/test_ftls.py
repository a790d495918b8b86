"""A filesystem on each FTL of the emulated SSD: made, filled, killed, checked and unmounted.

The SSD runs in streamfs's process. A kill therefore takes its volatile buffer with it, as a power
cut does.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration import promises
from tests.integration.pairs import BIN, Mount, Pair, run

MIB = 1 << 20
FILES, FILE_BYTES = 8, 32 * MIB
STREAMS = {"page-map": 8, "emmc": 5, "mmc": 5, "vstream": 8, "hybrid": 1, "log-block": 1}
USED = STREAMS | {"page-map": 2, "vstream": 2}  # at least, by four labels and the metadata log
MEANS = {
    "page-map": "emulated streams",
    "emmc": "eMMC contexts",
    "vstream": "vStreams",
    "hybrid": "the FTL hybrid has no streams",
    "log-block": "the FTL log-block has no streams",
}
NO_CONTROLLER = {
    "emmc": "is an eMMC and has no NVMe controller",
    "vstream": "has a vStream-FTL, which no NVMe command reaches",
    "hybrid": "has the FTL hybrid, which has no streams, and no NVMe controller",
    "log-block": "has the FTL log-block, which has no streams, and no NVMe controller",
}


def info(pair: Pair) -> dict[str, Any]:
    """The shape and the counters of the SSD."""
    said: dict[str, Any] = json.loads(run(BIN / "ssd-sim", "info", pair.image, "--json").stdout)
    return said


def ftl_of(pair: Pair) -> str:
    """The FTL of the pair's image."""
    return "emmc" if pair.folder.name == "mmc" else pair.folder.name


@pytest.fixture(params=STREAMS)
def ftl_pair(request: pytest.FixtureRequest, make_pair: Callable[..., Pair]) -> Pair:
    """A formatted pair whose SSD has the FTL of the parameter."""
    pair = make_pair(request.param)
    if pair.given:
        pytest.skip("on an emulated SSD only")
    pair.image.unlink()
    ftl = ftl_of(pair)
    words = ["--ftl", ftl, "--size", "1G", "--op", "0.1"]
    said = run(BIN / "ssd-sim", "create", pair.image, *words).stdout
    assert ftl in said
    if request.param == "mmc":
        pair.data = f"mmc:{pair.image}"
    pair.mkfs()
    return pair


def name(number: int, version: int) -> str:
    """The word that fills a file of this version."""
    return f"bulk{number}-{version}"


def overwrite_all(mount: Mount, version: int) -> None:
    """Write every bulk file anew, each with a label of its own, and make the last durable."""
    for number in range(FILES):
        path = mount / f"bulk{number}"
        with path.open("wb") as file:
            run(BIN / "streamctl", "hint", "--name", f"label{number % 4}", path)
            file.write(promises.content(name(number, version), FILE_BYTES))
            file.flush()
            os.fsync(file.fileno())


def assert_bulk(mount: Mount, version: int) -> None:
    """Every bulk file has the content of this version."""
    for number in range(FILES):
        found = (mount / f"bulk{number}").read_bytes()
        assert found == promises.content(name(number, version), FILE_BYTES), f"bulk{number}"


@contextmanager
def promising(mount: Mount, seed: int, notes: Path) -> Iterator[None]:
    """Beside the body small files, rows and slots are written and synced, until the kill."""
    with notes.open("ab") as note:
        words = [sys.executable, promises.__file__, "work", str(mount.point), str(seed)]
        worker = subprocess.Popen(words, stdout=note, stderr=subprocess.DEVNULL)
        try:
            yield
            assert worker.poll() is None, "the worker ended"
        finally:
            mount.process.kill()
            worker.kill()
            worker.wait()  # before the dead mount goes, or it would write below it
            mount.kill()


def test_a_filesystem_on_each_ftl_keeps_what_was_synced(ftl_pair: Pair) -> None:
    pair, notes = ftl_pair, ftl_pair.folder / "notes"
    mount = pair.mount()
    kept = 0
    for version in range(5):
        with promising(mount, 100 + version, notes):
            overwrite_all(mount, version)
            time.sleep(0.2)
        pair.assert_sound()
        mount = pair.mount()
        assert_bulk(mount, version)
        before, kept = kept, promises.check(mount.point, notes.read_text())
        assert kept > before
    written = info(pair)["written_bytes"]
    mount.unmount()
    pair.assert_sound()
    shown = info(pair)
    assert shown["ftl"] == ftl_of(pair)
    assert shown["stream_count"] == STREAMS[pair.folder.name]
    assert shown["damaged_pages"] == 0
    assert shown["written_bytes"] >= written >= 1 << 30
    used = [row["stream"] for row in shown["streams"] if row["written_bytes"] > 0]
    assert len(used) >= USED[pair.folder.name]
    counts = shown["ftl_counts"]
    match ftl_of(pair):
        case "emmc":
            assert counts["contexts_written"] > 1
            assert 0 < counts["blocks_read_at_power_up"] < shown["blocks"]
        case "hybrid":
            assert 0 < counts["words_read_at_power_up"] < 100
            assert 0 < counts["spare_areas_read_at_power_up"] < 100
        case "log-block":
            assert counts["spare_areas_read_at_power_up"] > shown["blocks"]
            assert counts["merges_full"] + counts["merges_partial"] > 0
        case "vstream":
            assert counts["remaps"] > 0
        case _:
            assert counts == {}


def test_the_device_text_names_the_means(ftl_pair: Pair) -> None:
    said = run(BIN / "streamctl", "device", ftl_pair.data).stdout
    assert MEANS[ftl_of(ftl_pair)] in said, said


@pytest.mark.parametrize(
    "ftl_pair", [each for each in STREAMS if each != "page-map"], indirect=True
)
def test_an_image_without_a_controller_is_refused_as_one(ftl_pair: Pair) -> None:
    image = ftl_pair.image
    done = run(BIN / "streamctl", "device", f"nvme:fdp:{image}", check=False)
    assert done.returncode != 0
    assert f"{image} {NO_CONTROLLER[ftl_of(ftl_pair)]}" in done.stdout + done.stderr


@pytest.mark.parametrize("ftl_pair", ["vstream"], indirect=True)
def test_a_device_that_maps_vstreams_is_told_them_unless_placement_is_off(ftl_pair: Pair) -> None:
    for asked, mode, labels_told in (
        ("auto", "passthrough", 5),
        ("passthrough", "passthrough", 5),
        ("off", "off", 0),
    ):
        mount = ftl_pair.mount(f"placement={asked}")
        assert mount.status()["placement"] == mode
        assert mount.status()["pstreams"] == 1
        for number in range(5):
            path = mount / f"labelled{number}"
            path.touch()
            if mode != "off":
                run(BIN / "streamctl", "hint", "--name", f"label{number}", path)
            path.write_bytes(promises.content(path.name, MIB))
        run(BIN / "streamctl", "sync", mount.point)
        run(BIN / "streamctl", "trim", mount.point)
        mount.unmount()
        ftl_pair.mount().unmount()  # the device counts vStreams at its power-up
        live = info(ftl_pair)["ftl_counts"]["live_vstreams"]
        assert labels_told + 1 <= live <= labels_told + 2  # and the default one, the log


def test_passthrough_needs_a_device_that_maps_vstreams(pair: Pair) -> None:
    if pair.given:
        pytest.skip("on an emulated SSD only")
    words = [str(pair.data), str(pair.point), "-f", "-o", f"meta={pair.meta},placement=passthrough"]
    done = run(BIN / "streamfs", *words, check=False)
    assert done.returncode != 0
    assert "does not map vStreams itself" in done.stdout + done.stderr
    pair.assert_sound()
