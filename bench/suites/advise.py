"""Advice beside what came of it: NAND bytes predicted from a recorded ext4, and measured."""

import sys

from bench.advised import FULL, MIB, QUICK, outcome
from bench.loop import why_not
from bench.table import Row, Target, main, row, unavailable

OFF = 0.1


def measure(quick: bool) -> list[Row]:
    """Return every row; targets are the issue's: within a tenth."""
    if reason := why_not(["mkfs.ext4"]):
        return [unavailable("advice on ext4 on a loop device", reason)]
    found = outcome(QUICK if quick else FULL)
    rows = []
    for name, predicted, measured in (
        ("ext4 as it is", "now", found.ext4),
        ("streamfs, streams off", "off", found.streams_off),
        ("streamfs with streams", "streams", found.streamfs),
    ):
        said = float(found.predicted[f"nand_{predicted}_bytes"])
        spare = f"MiB, effective spare {measured.effective_spare:.1%}"
        rows.append(row(f"{name}: NAND bytes measured", measured.nand_bytes / MIB, spare))
        rows.append(row(f"{name}: predicted", said / MIB, "MiB"))
        off = abs(said / measured.nand_bytes - 1)
        rows.append(row("  off by", off, "", Target(OFF)))
    return rows


if __name__ == "__main__":
    sys.exit(main("advise", __doc__.splitlines()[0], measure))
