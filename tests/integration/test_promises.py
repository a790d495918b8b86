"""The checks of the kill and power tests fail when something is missing that was promised."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration import promises
from tests.integration.pairs import until

ENOUGH_BYTES = 3000


@pytest.fixture
def notes(tmp_path: Path) -> str:
    """The notes of a workload that was killed; what it made is in the folder."""
    said = tmp_path.with_name("notes")
    with said.open("wb") as out:
        words = [sys.executable, promises.__file__, "work", str(tmp_path), "7"]
        worker = subprocess.Popen(words, stdout=out)
    try:
        until(lambda: said.stat().st_size > ENOUGH_BYTES, 60, "notes")
    finally:
        worker.kill()
        worker.wait()
    return said.read_text()


def last(notes: str, kind: str) -> list[str]:
    """The words of the last note of a kind, unlinked files' left out."""
    gone = set(re.findall(r"^going (\S+)$", notes, re.MULTILINE))
    rows = [line.split()[1:] for line in notes.splitlines() if line.startswith(f"{kind} ")]
    return [row for row in rows if row[0] not in gone][-1]


def lose_file(root: Path, notes: str) -> None:
    (root / last(notes, "file")[0]).unlink()


def lose_end(root: Path, notes: str) -> None:
    name = next(n for n, size in re.findall(r"^file (\S+) ([1-9]\d*)$", notes, re.MULTILINE))
    os.truncate(root / name, (root / name).stat().st_size - 1)


def lose_unlink(root: Path, notes: str) -> None:
    (root / re.findall(r"^gone (\S+)$", notes, re.MULTILINE)[-1]).write_bytes(b"")


def lose_slot(root: Path, notes: str) -> None:
    seed, slot, _ = last(notes, "slot")
    with (root / f"slots-{seed}").open("r+b") as file:
        file.seek(int(slot) * promises.SLOT_BYTES + promises.SLOT_BYTES // 2)
        file.write(bytes(16))


def lose_row(root: Path, notes: str) -> None:
    base = sqlite3.connect(root / "base.db", isolation_level=None)
    base.execute("delete from t where k = ?", (int(last(notes, "row")[0]),))
    base.close()


def test_all_that_was_promised_is_found(tmp_path: Path, notes: str) -> None:
    assert promises.check(tmp_path, notes) > 0


def test_a_note_without_an_end_was_never_promised(tmp_path: Path, notes: str) -> None:
    promised = promises.check(tmp_path, notes)
    assert promises.check(tmp_path, notes + "file d0/never 5000") == promised


@pytest.mark.parametrize("lose", [lose_file, lose_end, lose_unlink, lose_slot, lose_row])
def test_what_is_missing_is_noticed(
    tmp_path: Path, notes: str, lose: Callable[[Path, str], None]
) -> None:
    lose(tmp_path, notes)
    with pytest.raises((AssertionError, OSError)):
        promises.check(tmp_path, notes)
