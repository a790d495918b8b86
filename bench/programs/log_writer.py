"""Services that log: append lines, make them durable now and then, rotate, delete the oldest.

usage: log_writer.py FOLDER BYTES ROTATE_BYTES KEPT SEED
"""

import os
import random
import sys
from pathlib import Path

SERVICES = ("access", "audit", "worker")
SYNC_BYTES = 24 * 1024


def rotate(log: Path, kept: int) -> None:
    """Rename log → log.1 → log.2 …; the one past ``kept`` is deleted."""
    oldest = log.with_name(f"{log.name}.{kept}")
    oldest.unlink(missing_ok=True)
    for number in range(kept - 1, 0, -1):
        newer = log.with_name(f"{log.name}.{number}")
        if newer.exists():
            newer.rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(log.with_name(f"{log.name}.1"))


def append(log: Path, size: int, kept: int, rotate_bytes: int, randomness: random.Random) -> None:
    """Append about ``size`` bytes of lines and make them durable; rotate when the log is full."""
    with log.open("ab", buffering=0) as file:
        while size > 0:
            line = randomness.randbytes(randomness.randrange(30, 180)).hex().encode() + b"\n"
            size -= file.write(line)
        os.fdatasync(file.fileno())
        full = file.tell() >= rotate_bytes
    if full:
        rotate(log, kept)


def main(arguments: list[str]) -> int:
    """Write the given number of bytes over all services."""
    folder = Path(arguments[0])
    size, rotate_bytes, kept, seed = map(int, arguments[1:5])
    randomness = random.Random(seed)
    while size > 0:
        part = min(size, randomness.randrange(2048, 2 * SYNC_BYTES))
        service = randomness.choice(SERVICES)
        append(folder / f"{service}.log", part, kept, rotate_bytes, randomness)
        size -= part
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
