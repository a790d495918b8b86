"""Long commands report their steps."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from streamfs_lab.cli import main


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        (["replay", "hot-cold", "--policies", "nosep"], ["learning", "simulating learned"]),
        (["plot", "hot-cold", "-o", "a.png"], ["learning"]),
    ],
)
def test_long_commands_report_their_steps(
    words: list[str],
    steps: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("classifierd.progress._EVERY_SECONDS", 0.001)
    assert main([*words, "--pages", "60000", "--live", "4096"]) == 0
    for step in steps:
        assert any(f"{words[0]} of {words[1]}, {step}" in line for line in caplog.messages), step
