"""Label what a program writes, and a tree that is there already.

usage: libstream_label.py FOLDER
"""

import sys
from pathlib import Path

import libstream


def main(folder: Path) -> None:
    """Write one file, label all of the folder, say what the mount made of it."""
    path = folder / "report.csv"
    with path.open("w") as file:
        outcome = libstream.VStream.named("reports").tag(file)
        file.write("a,b\n")
    info = libstream.query(path)
    print(info.name if info else "elsewhere", "honoured" if outcome else outcome.code)
    print("labelled", libstream.VStream.named("tree").tag_tree(folder)[1])
    device = libstream.device(folder)
    print("streams", device.pstreams if device else "unknown")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
