"""Errors of every command are sentences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "PATH"],
        ["explain", "PATH"],
        ["plot", "PATH", "-o", "x.png"],
        ["advise", "PATH"],
        ["report", "PATH", "-o", "x.html"],
        ["--check-config", "PATH"],
    ],
)
def test_a_missing_file_is_told_in_a_sentence(words: list[str], tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    command = [sys.executable, "-m", "classifierd", *(gone if w == "PATH" else w for w in words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (64, 66), done.stderr
    assert done.stderr.startswith("classifierd"), done.stderr
    assert f"{gone}: " in done.stderr
    assert "No such file or directory" in done.stderr
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr
