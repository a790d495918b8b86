"""A filesystem on an emulated SSD that is spoken to in NVMe commands; no real device takes part."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pairs import BIN, Pair, run

LABELS = ("one", "two", "three")
FILE_BYTES = 1 << 20


def device(*words: str | Path) -> dict[str, Any]:
    """The object that streamctl device prints."""
    answer: dict[str, Any] = json.loads(run(BIN / "streamctl", "device", "--json", *words).stdout)
    return answer


def write_labelled(folder: Path, label: str) -> None:
    """A file in a directory of its own vStream, on DATA when this returns."""
    folder.mkdir()
    os.setxattr(folder, "user.streamfs.vstream", label.encode())
    with (folder / "file").open("wb") as file:
        file.write(label.encode() * (FILE_BYTES // len(label)))
        file.flush()
        os.fsync(file.fileno())


@pytest.mark.parametrize("mechanism", ["fdp", "streams"])
def test_each_label_has_a_stream_of_the_device(
    make_pair: Callable[..., Pair], mechanism: str
) -> None:
    pair = make_pair(size="128M")
    pair.data = f"nvme:{mechanism}:{pair.image}"
    pair.mkfs()
    mounted = pair.mount()
    for label in LABELS:
        write_labelled(mounted / label, label)
    told = device(mounted.point)
    assert told["written_bytes"] >= len(LABELS) * (FILE_BYTES - 10)
    if mechanism == "fdp":
        assert told["nand_bytes"] >= told["written_bytes"]
    else:  # of so few of its units of 512,000 bytes the other source says nothing
        assert told["nand_bytes"] is None
    assert told["gc_bytes"] is None
    mounted.unmount()
    # The labels of NVMe commands reached the flash: it counts the bytes written to each stream.
    info = json.loads(run(BIN / "ssd-sim", "info", pair.image, "--json").stdout)
    written = [stream["written_bytes"] for stream in info["streams"]]
    assert sum(1 for each in written[1:] if each >= FILE_BYTES - 10) == len(LABELS), written
    pair.assert_sound()
    again = pair.mount()
    for label in LABELS:
        assert (again / label / "file").read_bytes() == label.encode() * (FILE_BYTES // len(label))


def test_a_device_that_is_not_mounted_is_described(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(size="64M")
    idle = device(f"nvme:fdp:{pair.image}")
    assert idle["placement"]["mechanism"] == "FDP"
    assert idle["placement"]["honoured"] is None
    assert idle["medium"] == {
        "source": "FDP statistics",
        "host_bytes": 0,
        "media_bytes": 0,
        "waf": None,
    }
    assert len(idle["fdp"]["handles"]) == idle["pstreams"] == 8
    assert device(f"nvme:fdp:{pair.image}", "--probe")["placement"]["honoured"] is True
    streams = device(f"nvme:streams:{pair.image}", "--probe")
    assert streams["placement"]["honoured"] is True
    assert streams["streams"]["allocated"] == 7
    assert device(f"emu:{pair.image}")["kind"] == "emulated"
    for words in (f"nvme:streams:{pair.image}", f"nvme:fdp:{pair.image}"):
        assert "honoured" in run(BIN / "streamctl", "device", words).stdout


def test_what_streamctl_device_cannot_do_is_said(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(size="64M")
    pair.mkfs()
    mounted = pair.mount()
    for words, said in (
        ((f"nvme:zns:{pair.image}",), "nvme:streams:PATH or nvme:fdp:PATH"),
        ((mounted.point, "--probe"), "not mounted"),
        ((f"nvme:fdp:{pair.image}",), "in use"),
    ):
        done = run(BIN / "streamctl", "device", *words, check=False)
        assert done.returncode != 0
        assert said in done.stderr, done.stderr
