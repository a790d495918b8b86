"""The daemon's configuration file: mistakes are told with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from classifierd import config
from classifierd.cli import main
from classifierd.command_line import EXIT_USAGE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[daemon]\n\npoll_ms = 'x'\n", ":3: [daemon] poll_ms"),
        ("[learner]\n# a\n[daemon]\nretries = 1\n", ":4: [daemon] retries"),
        ("[daemon]\nsave_seconds = 0\n", ":1: [daemon]: all of [daemon]"),
        ("# a\n[other]\n", ":2: unknown section [other]"),
        ("\ndaemon = 7\n", ":2: [daemon] is no table"),
        ("[daemon]\npoll_ms 5\n", "line 2"),
    ],
)
def test_a_mistake_in_a_configuration_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["--check-config", str(path)])
    assert ended.value.code == EXIT_USAGE
    assert str(path) in (told := capsys.readouterr().err)
    assert says in told


def test_a_configuration_without_mistakes_is_right_and_one_that_is_missing_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[daemon]\npoll_ms = 20\n")
    for name, code in ((path, 0), (tmp_path / "none.toml", EXIT_USAGE)):
        with pytest.raises(SystemExit) as ended:
            main(["--check-config", str(name)])
        assert ended.value.code == code
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["[learner]\nepochpages = 3\n", "[learner]\ndecay = 7.0\n", "[other]\n", "=", "learner = 1\n",
     '[learner]\nlevels = ["nonsense"]\n', "[daemon]\npoll_ms = 0\n",
     '[daemon]\ncandidates = ["nonsense"]\n', "[daemon]\ncandidates = []\n"],
)  # fmt: skip
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(config.ConfigError):
        config.read(path)
    assert main(["run", "/mnt", "--once", "--config", str(path)]) == EXIT_USAGE


def test_a_configuration_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[learner]\nmethod = "kmeans"\nkappa = 100\n[daemon]\npoll_ms = 9\n')
    found = config.read(path)
    assert (found.learner.method, found.learner.kappa, found.daemon.poll_ms) == ("kmeans", 100.0, 9)
