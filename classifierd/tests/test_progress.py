"""Progress of long work: a line every few seconds that names the work, the step and the time."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from classifierd.cli import main
from classifierd.progress import Progress


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


def test_each_line_names_the_work_the_step_and_the_share_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with Progress("replay of x", 0.002) as progress:
        wait_for(lambda: "replay of x, 0 s" in caplog.messages)
        progress.step("learning")
        wait_for(
            lambda: any(line.startswith("replay of x, learning, ") for line in caplog.messages)
        )
        progress.reached(30, 40)
        wait_for(lambda: any("learning, 75 % after " in line for line in caplog.messages))
        progress.step("drawing")
        wait_for(lambda: any(line.startswith("replay of x, drawing, ") for line in caplog.messages))
    count = len(caplog.messages)
    time.sleep(0.02)
    assert len(caplog.messages) == count, "the work is over"


def test_short_work_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Progress("replay of x"):
        pass
    assert caplog.messages == []


def test_a_long_command_reports_its_steps(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("classifierd.progress._EVERY_SECONDS", 0.001)
    trace = written(tmp_path)
    assert main(["advise", str(trace)]) == 0
    assert any(f"advise of {trace}, predicting for" in line for line in caplog.messages)


def written(folder: Path) -> Path:
    rows = [f"{n},W,{n * 7919 % 5000 * 4096},4096" for n in range(60_000)]
    path = folder / "a.csv"
    path.write_text("\n".join(["ts_us,op,offset_bytes,length_bytes", *rows]) + "\n")
    return path


def test_the_lines_go_to_standard_error_and_the_result_to_standard_output(tmp_path: Path) -> None:
    program = (
        "import sys; from classifierd import cli, progress; progress._EVERY_SECONDS = 0.01; "
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    words = ["advise", str(written(tmp_path)), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.startswith("{")
    assert f"classifierd: advise of {words[1]}, predicting for" in done.stderr
