"""docs/EXPECTED.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"([\w/]+\.py)::(\w+)", (ROOT / "docs/EXPECTED.md").read_text())
    assert len(named) > 30
    for file, test in named:
        path = ROOT / "tests" / file
        assert path.is_file(), file
        assert re.search(rf"^def {test}\(", path.read_text(), re.M), f"{file}::{test}"
