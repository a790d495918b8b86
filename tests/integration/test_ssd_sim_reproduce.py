"""ssd-sim reproduce on the command line: what it lists, prints, draws and refuses."""

import json
import os
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
USAGE, IO = 64, 70
QUICK = "yong2021-overhead"


def reproduce(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ssd-sim reproduce to its end."""
    return subprocess.run(
        [BIN / "ssd-sim", "reproduce", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def figures() -> list[str]:
    """Return the names of all figures there are."""
    return [line.split()[0] for line in reproduce().stdout.splitlines()]


def test_without_a_name_it_lists_the_figures_of_the_report() -> None:
    report = (ROOT / "docs/REPRODUCTION.md").read_text()
    headings = [line[3:] for line in report.splitlines() if line.startswith("## ")]
    assert figures() == headings


def test_one_figure_says_the_papers_number_and_what_it_leaves_unsaid() -> None:
    done = reproduce(QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1.80" in done.stdout
    assert "\nunsaid: " in done.stdout
    assert "\nassumed: " in done.stdout


def test_json_has_what_the_first_row_says() -> None:
    done = reproduce(QUICK, "--json", "--seeds", "2")
    (figure,) = json.loads(done.stdout)["figures"]
    assert figure["name"] == QUICK
    assert (figure["paper"], figure["unit"], figure["seeds"]) == (1.8, "µs", 2)
    # Microseconds of this machine, which may be a slow one.
    assert 0 < figure["ours"] < 20
    assert 0 < figure["rows"][1]["ours"] < 20
    assert figure["rows"][0]["ours"] == figure["ours"]
    [found] = figure["findings"]
    times = float(found.split(", ")[-1].split()[0])
    assert "1.80 in the source" in found
    assert times == pytest.approx(figure["ours"] / 1.8, rel=0.1)


def test_a_picture_has_the_papers_value_beside_ours(tmp_path: Path) -> None:
    png, svg = tmp_path / "figure.png", tmp_path / "figure.svg"
    assert reproduce(QUICK, "--png", png, "--svg", svg).returncode == 0
    assert png.read_bytes().startswith(b"\x89PNG\r\n")
    words = "".join(ET.parse(svg).getroot().itertext())
    assert "(paper 1.80)" in words
    assert "the paper's value" in words


def test_without_matplotlib_the_numbers_are_printed_and_the_error_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    done = reproduce(QUICK, "--png", tmp_path / "figure.png")
    assert "1.80" in done.stdout
    assert done.returncode == IO
    assert "matplotlib" in done.stderr
    assert "apt-get install" in done.stderr
    assert not (tmp_path / "figure.png").exists()
    monkeypatch.setenv("STREAMFS_PYTHON", str(tmp_path / "none"))
    assert "STREAMFS_PYTHON" in reproduce(QUICK, "--png", tmp_path / "figure.png").stderr


def test_unknown_figure_is_refused_with_the_known() -> None:
    done = reproduce("figure-8")
    assert done.returncode == USAGE
    assert done.stdout == ""
    for name in figures():
        assert name in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--all", QUICK),
        ("--all", "--png", "/dev/null"),
        ("--all", "--scale", "1/2"),
        ("--json",),
        (QUICK, "--json", "--markdown"),
        (QUICK, "--scale", "2"),
        (QUICK, "--scale", "1/0"),
        (QUICK, "--scale", "1/2"),
        (QUICK, "--seeds", "0"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: tuple[str, ...]) -> None:
    done = reproduce(*arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr
