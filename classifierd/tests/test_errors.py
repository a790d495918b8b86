"""Errors of every command are sentences."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from classifierd.cli import main
from classifierd.command_line import EXIT_USAGE


def error_of(words: list[str], path: Path) -> str:
    """Run a command on a path, which is said as PATH, and give what it says as it fails."""
    command = [sys.executable, "-m", "classifierd", *(w.replace("PATH", str(path)) for w in words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (64, 66), done.stderr
    assert done.stderr.splitlines()[-1].startswith("classifierd"), done.stderr
    assert done.stdout == ""
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["run", "PATH"],
        ["explain", "PATH"],
        ["advise", "PATH"],
        ["report", "PATH", "-o", "x.html"],
        ["--check-config", "PATH"],
    ],
)
def test_a_missing_file_is_told_in_a_sentence(words: list[str], tmp_path: Path) -> None:
    said = error_of(words, tmp_path / "gone")
    assert str(tmp_path / "gone") in said
    assert "No such file or directory" in said


def test_a_file_that_is_no_text_is_called_so(tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(255, 0, -1)) * 20)
    assert f"{noise}: not a text file" in error_of(["--check-config", "PATH"], noise)


@pytest.mark.parametrize("program", ["streamctl", "classifierd", None])
def test_errors_begin_with_the_program_that_the_user_called(
    program: str | None, tmp_path: Path
) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "CLASSIFIERD_PROGRAM"}
    environment |= {} if program is None else {"CLASSIFIERD_PROGRAM": program}
    for words in (["advise", "gone"], ["report", ".", "-o", "a"], ["metrics", "."], ["advise"]):
        done = subprocess.run(
            [sys.executable, "-m", "classifierd", *words],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
        )  # fmt: skip
        assert done.returncode in (64, 66)
        said = done.stderr.splitlines()[-1]
        assert said.startswith((f"{program or 'classifierd'}: ", f"{program or 'classifierd'} "))


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("classifierd 0.")


@pytest.mark.parametrize("words", [[], ["fly"], ["run"], ["run", "/", "-z"]])
def test_usage_errors_have_their_exit_code(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == EXIT_USAGE
    assert "usage" in capsys.readouterr().err
