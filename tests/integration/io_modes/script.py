"""Use every mode of I/O in a folder and print what was observed as JSON.

usage: python -m tests.integration.io_modes.script FOLDER

The same on every filesystem; test_io_modes.py compares.
"""

import json
import sys
from pathlib import Path

from tests.integration.io_modes import alone, together


def main(folder: Path) -> int:
    """Run all cases, each in a folder of its own."""
    seen = {}
    for case in (*alone.CASES, *together.CASES):
        place = folder / case.__name__
        place.mkdir()
        seen[case.__name__] = case(place)
    print(json.dumps(seen, default=repr, indent=1))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
