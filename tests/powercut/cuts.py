"""Power cuts from outside: streamfs on disks that are not the project's own, cut while in use.

usage: python -m tests.powercut.cuts [--cuts N] [--seed N] [--variant NAME] [--lie data|all]

Each filesystem is cut six times; after each cut it is mounted, everything that was ever promised of
it is looked at, and fsck must find nothing. Exits 0 when there were no violations. With --lie the
flushes of DATA's disk, or of all disks, do nothing, and it exits 0 when a violation was found.
Needs root, and power_cut_disk beside the programs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.integration.pairs import BIN
from tests.powercut.rig import VARIANTS, Machine, Variant, own_boot_id

CUTS_EACH = 6
INSIDE = "STREAMFS_POWERCUT_NAMESPACE"


class Tally:
    """The sums of all cuts."""

    def __init__(self) -> None:
        self.cuts = self.promises = 0
        self.wrong: list[str] = []


def cut_one(folder: Path, variant: Variant, seed: int, cuts: int, tally: Tally, lie: str) -> None:
    """Make a filesystem and cut its power several times."""
    machine = Machine(folder, variant, seed, lie)
    try:
        if variant.full:
            machine.fill()
        for _ in range(cuts):
            machine.run_and_cut()
            tally.cuts += 1
            kept, wrong = machine.look()
            tally.promises += kept
            if wrong:
                where = f"{variant.name}, seed {seed}, cut {machine.boots}"
                tally.wrong += [f"{where}: {each}" for each in wrong]
                return
    except AssertionError as failure:
        tally.wrong.append(f"{variant.name}, seed {seed}, cut {machine.boots}: {failure}")
    finally:
        machine.end()


def cut_all(options: argparse.Namespace) -> Tally:
    """Go through the variants until there were enough cuts."""
    tally, number = Tally(), 0
    variants = [each for each in VARIANTS if options.variant in (None, each.name)]
    with tempfile.TemporaryDirectory(prefix="cut.", dir="/tmp") as name, own_boot_id(Path(name)):
        while tally.cuts < options.cuts and not (tally.wrong and options.lie):
            variant = variants[number % len(variants)]
            folder = Path(name) / str(number)
            folder.mkdir()
            cuts = min(CUTS_EACH, options.cuts - tally.cuts)
            cut_one(folder, variant, options.seed + number, cuts, tally, options.lie)
            subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)
            number += 1
    return tally


def main() -> int:
    """Run in a mount namespace of our own, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=36)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", choices=[each.name for each in VARIANTS])
    parser.add_argument("--lie", choices=["data", "all"], default="")
    options = parser.parse_args()
    if os.geteuid() != 0 or not (BIN / "power_cut_disk").exists():
        print("it takes root, and a built power_cut_disk", file=sys.stderr)
        return 2
    if INSIDE not in os.environ:
        unshare = ["unshare", "--mount", "--propagation", "private", "--", sys.executable]
        words = [*unshare, "-m", "tests.powercut.cuts", *sys.argv[1:]]
        return subprocess.run(words, env=os.environ | {INSIDE: "1"}, check=False).returncode
    began = time.monotonic()
    tally = cut_all(options)
    if tally.wrong:
        print("\n".join(tally.wrong))
    print(
        f"power cuts: {tally.cuts}, {tally.promises} promises looked at,"
        f" {len(tally.wrong)} violations ({time.monotonic() - began:.0f} s)"
    )
    return 0 if tally.promises and bool(tally.wrong) == bool(options.lie) else 1


if __name__ == "__main__":
    sys.exit(main())
