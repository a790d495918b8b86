"""fsx on a mount of its own: random operations on one file, each read compared with memory.

usage: python -m tests.conformance.fsx FSX OPERATIONS

Divides OPERATIONS among /dev/fuse and io_uring. Leaves io_uring out with a message if the kernel
does not offer it.
Reads and writes by calls and by mappings, truncations, holes, preallocation, copy_file_range. A
failure prints its seed: a number for fsx's -S. Unmounts whatever happens; exits 0 when every byte
was right and fsck finds nothing.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.sound import sound_mount, transports
from tests.integration.pairs import Mount

CONFIGURATION = Path(__file__).parent / "fsx.toml"
FILES_LEAST = 2
OPERATIONS_MOST = 50_000  # on one file: the tool slows down with what it has done
SECONDS_PER_OPERATION = 0.02  # ten times what it takes


def exercise(mount: Mount, program: str, operations: int, seed: int) -> bool:
    """Run one seed on a file of its own."""
    words = [program, "-f", CONFIGURATION, "-S", seed, "-N", operations, "-P", mount.point.parent]
    done = subprocess.run(
        [str(word) for word in [*words, mount.point / f"seed-{seed}"]],
        capture_output=True,
        text=True,
        timeout=60 + operations * SECONDS_PER_OPERATION,
        check=False,
    )
    if done.returncode != 0:
        print(f"seed {seed}:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def run_all(folder: Path, transport: str, program: str, operations: int) -> bool:
    """Make a filesystem, run every seed on it, take it down again."""
    files = max(FILES_LEAST, operations // OPERATIONS_MOST)
    seeds = [random.randrange(1 << 31) for _ in range(files)]
    with sound_mount(folder, [transport]) as mount:
        return all(exercise(mount, program, operations // files, seed) for seed in seeds)


def run_over(transport: str, program: str, operations: int) -> bool:
    """Run ``operations`` on a mount with the option ``transport``; return whether all went well."""
    with tempfile.TemporaryDirectory(prefix="fsx.") as name:
        sound = run_all(Path(name), transport, program, operations)
    print(f"fsx, {transport}: {operations} operations, {'every byte right' if sound else 'FAILED'}")
    return sound


def main(arguments: list[str]) -> int:
    """Run and say how it went."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with transports() as offered:
        each = int(arguments[1]) // len(offered)
        ran = [run_over(transport, arguments[0], each) for transport in offered]
    return 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
