"""A mount with ``-o real_time``: writes wait for the flash."""

import json
import os
import time

from tests.integration.pairs import BIN, Pair, run

MIB = 1 << 20
PROGRAM_SECONDS = {"SLC": 200e-6, "MLC": 1e-3, "TLC": 2e-3}
IN_BUFFER = 3  # wordlines of a die that may be on their way when a write is answered


def test_a_synced_write_takes_as_long_as_its_programs(pair: Pair) -> None:
    nand = json.loads(run(BIN / "ssd-sim", "info", pair.image, "--json").stdout)["nand"]
    dies = nand["channels"] * nand["chips"] * nand["dies"]
    round_bytes = dies * nand["wordline_pages"] * 4096
    size = 32 * MIB
    programs = size // round_bytes - IN_BUFFER  # of each die, one after another
    expected = 2.0  # seconds: what a machine needs for the rest is small beside it
    factor = expected / (programs * PROGRAM_SECONDS[nand["cell"]])
    mount = pair.mount(f"real_time={factor:.3f}")
    started = time.monotonic()
    with (mount / "file").open("wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())
    assert time.monotonic() - started >= 0.99 * expected
    device = mount.status()["device"]
    assert device["written_bytes"] >= size
    mount.unmount()
    pair.assert_sound()
    assert (pair.mount() / "file").stat().st_size == size
