"""The status of a mounted streamfs, as streamctl prints it."""

import json
from pathlib import Path
from typing import Any

from bench.paths import BIN
from bench.system import output_of


def status(mount: Path) -> dict[str, Any]:
    """Return all that streamctl knows of a mount."""
    answer: dict[str, Any] = json.loads(output_of([BIN / "streamctl", "status", mount, "--json"]))
    return answer


def vstreams(mount: Path) -> list[dict[str, Any]]:
    """Return the vStreams of a mount, as ``streamctl streams`` lists them."""
    answer = json.loads(output_of([BIN / "streamctl", "streams", mount, "--json"]))
    rows: list[dict[str, Any]] = answer["streams"]
    return rows
