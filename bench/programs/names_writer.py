"""Create files in directories with new names, as builds and package managers do.

usage: names_writer.py FOLDER ROUND NAMES

Makes NAMES directories with a file of an extension of its own in each, and deletes those of the
round before.
"""

import shutil
import sys
from pathlib import Path

BYTES = 8192


def word(number: int) -> str:
    """Return a name of letters only: digits would be folded into one."""
    letters = ""
    while number:
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return letters or "a"


def main(arguments: list[str]) -> int:
    """Make the directories of one round."""
    folder, number, names = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    here = folder / word(number + 1)
    for index in range(names):
        name = word(number * names + index + 1)
        inside = here / f"dir-{name}"
        inside.mkdir(parents=True)
        (inside / f"file.{name}").write_bytes(b"x" * BYTES)
    shutil.rmtree(folder / word(number), ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
