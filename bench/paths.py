"""Where the programs under measurement are."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Another build's programs can be tried: STREAMFS_BIN=build/asan/bin scripts/demo …
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build" / "release" / "bin")).resolve()
VENV_BIN = ROOT / "build" / "venv" / "bin"
