"""classifierd replay and plot of a trace run streamfs-lab, which need not be installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from classifierd.cli import main
from classifierd.command_line import EXIT_USAGE

COMMANDS = (
    ["replay", "trace.csv", "--json", "-v"],
    ["plot", "trace.csv", "-o", "a.png", "--streams", "4"],
    ["plot", "--live", "4096", "hot-cold", "-o", "a.png"],
)


@pytest.mark.parametrize("words", COMMANDS)
def test_the_command_is_passed_on_as_it_is_with_a_note(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    got: list[list[str]] = []

    def lab_main(given: list[str]) -> int:
        got.append(given)
        return 7

    lab = SimpleNamespace(main=lab_main)
    monkeypatch.setitem(sys.modules, "streamfs_lab.cli", lab)
    assert main(words) == 7
    assert got == [words]
    note = f"classifierd: {words[0]} of a trace is deprecated; use streamfs-lab {words[0]}\n"
    assert capsys.readouterr().err == note


@pytest.mark.parametrize("words", COMMANDS)
def test_without_the_package_the_error_names_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "streamfs_lab", None)
    monkeypatch.delitem(sys.modules, "streamfs_lab.cli", raising=False)
    assert main(words) == EXIT_USAGE
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("classifierd: the package streamfs-lab is not installed: ")


def test_a_mount_takes_no_unknown_option(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["plot", str(tmp_path), "-o", "a.png", "--bogus"])
    assert stopped.value.code == EXIT_USAGE


def test_the_daemons_commands_import_nothing_of_the_lab() -> None:
    program = (
        "import sys; import classifierd.cli; "
        "sys.exit([name for name in sys.modules if name.startswith('streamfs_lab')] or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
