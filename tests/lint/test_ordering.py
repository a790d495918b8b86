"""docs/ORDERING.md names tests and files that exist."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/ORDERING.md").read_text()
# Names in code that look like a test's.
OTHERS = {"SlotRoom"}


@cache
def sources() -> str:
    """All tests."""
    paths = [*(ROOT / "tests").rglob("*.cc"), *(ROOT / "tests").rglob("*.py")]
    return "\n".join(path.read_text() for path in paths)


def exists(name: str) -> bool:
    """Whether there is such a test, or a suite of that name."""
    if name.startswith("test_"):
        return re.search(rf"^def {name}\(", sources(), re.M) is not None
    suite, dot, test = name.rpartition(".")
    pattern = rf"{suite}, {test}\)" if dot else rf"\w+, {test}\)|{test}, \w+\)"
    return re.search(rf"^TEST(?:_F|_P)?\((?:{pattern})", sources(), re.M) is not None


def test_every_test_that_is_named_exists() -> None:
    names = re.findall(r"`((?:[A-Z]\w+\.)?[A-Z][a-z]\w*[A-Z]\w+|test_\w+)`", PAGE)
    assert len(names) > 60
    assert {name for name in names if name not in OTHERS and not exists(name)} == set()


def test_every_file_that_is_named_exists() -> None:
    names = re.findall(r"`((?:tests|fuse-fs|pmem)/[\w./-]+)`", PAGE)
    assert len(names) > 20
    assert {name for name in names if not (ROOT / name).exists()} == set()


def test_a_test_that_is_not_there_would_be_noticed() -> None:
    assert not exists("NobodyEverWroteThisTest")
    assert not exists("Conditional.NobodyEverWroteThisTest")
    assert not exists("test_nobody_ever_wrote_this")
