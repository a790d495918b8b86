"""docs/EXPECTED.md names tests that exist, and that the gate runs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/EXPECTED.md"


def place(file: str) -> Path:
    """Where a file that the page names is."""
    return ROOT / file if file.startswith("classifierd/") else ROOT / "tests" / file


def definition(file: str, test: str) -> re.Pattern[str]:
    """How a test begins, with all that marks it."""
    if file.endswith(".cc"):
        suite, name = test.split(".", 1)
        return re.compile(rf"^TEST(?:_F|_P)?\({suite}, {name}\)", re.M)
    return re.compile(rf"^(?P<marks>(?:[@ )].*\n)*)def {test}\(", re.M)


def runs_only_for_long(marks: str) -> bool:
    """Whether a mark holds for the whole test, not for some of its parameters."""
    return re.search(r"^@pytest\.mark\.long$", marks, re.M) is not None


def test_every_test_that_is_named_is_there_and_in_the_gate() -> None:
    named = re.findall(r"([\w/]+\.(?:py|cc))::([\w.]+)", PAGE.read_text())
    assert len(named) > 60
    assert sum(file.endswith(".cc") for file, _ in named) >= 3
    for file, test in named:
        path = place(file)
        assert path.is_file(), file
        text = path.read_text()
        found = definition(file, test).search(text)
        assert found, f"{file}::{test}"
        if file.endswith(".py"):
            assert not runs_only_for_long(found["marks"]), f"{file}::{test} is long"
            assert not re.search(r"^pytestmark = .*\blong\b", text, re.M), f"{file} is long"


def test_a_long_test_would_be_noticed() -> None:
    part = "pytest.param(2, marks=pytest.mark.long)"
    for marks, long in (
        ('@pytest.mark.long\n@other(\n    "x"\n)\n', True),
        (f"@pytest.mark.parametrize('n', [1, {part}])\n", False),
        ("", False),
    ):
        found = definition("x.py", "test_x").search(f"{marks}def test_x(")
        assert found
        assert runs_only_for_long(found["marks"]) == long
