"""What a mounted streamfs says of itself."""

import json
from pathlib import Path
from typing import Any

from bench.paths import BIN
from bench.system import output_of


def status(mount: Path) -> dict[str, Any]:
    """Return all that streamctl knows of a mount."""
    answer: dict[str, Any] = json.loads(output_of([BIN / "streamctl", "status", mount, "--json"]))
    return answer
