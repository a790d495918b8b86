"""An SSD without power-loss protection: what a flush makes it pad."""

import json
import mmap
import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

BLOCK = 4096
ROUNDS = 100
MakePair = Callable[..., Pair]


def info(pair: Pair) -> dict[str, Any]:
    """The shape and the counters of the SSD."""
    said: dict[str, Any] = json.loads(run(BIN / "ssd-sim", "info", pair.image, "--json").stdout)
    return said


def padded_bytes_a_round(pair: Pair, mount: Mount) -> float:
    """Two files of two pStreams are overwritten and one of them is synced, again and again."""
    page = mmap.mmap(-1, BLOCK)
    files = []
    for label in ("hot", "cold"):
        path = mount / label
        path.touch()
        run(BIN / "streamctl", "hint", "--name", label, path)
        files.append(os.open(path, os.O_RDWR | os.O_DIRECT))

    def one_round() -> None:
        for fd in files:
            os.pwritev(fd, [page], 0)
        os.fdatasync(files[-1])

    one_round()
    before = info(pair)["pad_bytes"]
    for _ in range(ROUNDS):
        one_round()
    padded = info(pair)["pad_bytes"] - before
    for fd in files:
        os.close(fd)
    return float(padded / ROUNDS)


def test_what_one_flush_covers_is_padded_once_unless_the_ssd_is_said_to_be_protected(
    make_pair: MakePair,
) -> None:
    found = {}
    for options in ("", "plp"):
        pair = make_pair(options or "as-it-says")
        if pair.given:
            pytest.skip("on an emulated SSD only: it counts")
        pair.image.unlink()
        words = ["--size", "512M", "--streams", "8", "--op", "0.1", "--no-plp"]
        run(BIN / "ssd-sim", "create", pair.image, *words)
        pair.mkfs()
        mount = pair.mount(*filter(None, [options]))
        found[options] = padded_bytes_a_round(pair, mount)
        mount.unmount()
        pair.assert_sound()
    wordline = info(pair)["nand"]["wordline_pages"] * BLOCK
    assert found["plp"] - found[""] > 0.8 * wordline, found
    assert found[""] < 1.2 * wordline, found
