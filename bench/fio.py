"""fio as a source of figures."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.system import output_of

MIB = 1 << 20


def run(folder: Path, options: Sequence[str]) -> dict[str, Any]:
    """Run one job in a folder and return fio's own account of it, all of its processes together."""
    command = ["fio", "--name=job", f"--directory={folder}", "--group_reporting", *options]
    jobs: list[dict[str, Any]] = json.loads(output_of([*command, "--output-format=json"]))["jobs"]
    [account] = jobs
    return account


def mib_a_second(account: dict[str, Any], direction: str) -> float:
    """Return the speed of "read" or "write", syncs at the end included."""
    return float(account[direction]["bw_bytes"]) / MIB


def operations_a_second(account: dict[str, Any], direction: str) -> float:
    """Return how many reads or writes a second were done."""
    return float(account[direction]["iops"])
