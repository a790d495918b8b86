"""The first hour with streamfs: README.md's commands, with the programs of packages."""

import re
from pathlib import Path

from tests.systemd.world import ROOT

INSIDE = Path(__file__).with_name("inside")
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
OF_A_BUILD = "cd build/release/bin\n"  # begins the commands
IN_A_BUILD = re.compile(r"(?<![\w./])(?:\.\./\.\./venv/bin/|\./)(?=[a-z])")
END = "kill $daemon"  # begins the last lines


def script(name: str) -> str:
    """Return a script of the folder `inside`."""
    return (INSIDE / name).read_text()


def first_hour(readme: str | None = None) -> str:
    """Return README.md's commands as one script, with the work of a while before their last lines.

    Raises AssertionError if README.md has no such commands.
    """
    text = (ROOT / "README.md").read_text() if readme is None else readme
    for found in FENCE.findall(text):
        if found.startswith(OF_A_BUILD):
            commands = IN_A_BUILD.sub("", found.removeprefix(OF_A_BUILD))
            begin, end = commands.split(END)
            work = script("work")
            return f"set -euo pipefail\n{begin}\n{work}\n{END}{end}\n{script('left')}"
    msg = f"README.md has no commands that begin with {OF_A_BUILD!r}"
    raise AssertionError(msg)
