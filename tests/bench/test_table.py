"""The benches' output: figures against targets, and JSON of one form."""

import json
import subprocess
from pathlib import Path

import pytest
from bench.paths import ROOT
from bench.table import Target, draw, drawn, print_rows, row, to_json, unavailable
from rich.console import Console

BENCHES = sorted(path.name for path in (ROOT / "bench").iterdir() if path.is_symlink())


def test_a_row_is_met_at_its_target_and_missed_beyond() -> None:
    assert row("fences", 1, "", Target(1)).met
    assert row("fences", 1.001, "", Target(1)).met is False
    assert row("speed", 2, "", Target(2, at_least=True)).met
    assert row("speed", 1.999, "", Target(2, at_least=True)).met is False
    assert row("figure", 3, "ns").met is None


def test_a_missed_target_is_shown_as_missed() -> None:
    console = Console(record=True, width=100)
    print_rows(console, "bench", [row("slow", 3, "ns", Target(2)), row("fast", 1, "ns", Target(2))])
    lines = console.export_text().splitlines()
    assert any("slow" in line and "missed" in line for line in lines)
    assert any("fast" in line and "missed" not in line and "met" in line for line in lines)


def test_json_has_the_promised_keys() -> None:
    told = json.loads(json.dumps(to_json("bench", [row("slow", 3, "ns", Target(2))])))
    assert set(told) == {"schema", "bench", "commit", "machine", "date", "command", "rows"}
    assert told["schema"] == 1
    assert told["rows"] == [
        {"name": "slow", "value": 3, "unit": "ns", "target": "≤ 2", "met": False}
    ]


def test_a_picture_shows_ratios_and_what_has_a_target(tmp_path: Path) -> None:
    rows = [
        row("slow", 3, "ns", Target(2)),
        row("a ÷ b", 0.7, "0.6 to 0.8"),
        row("speed", 1e9, "a second"),
        unavailable("nothing ÷ a", "not installed"),
    ]
    assert [one.name for one in drawn(rows)] == ["slow", "a ÷ b"]
    draw("bench", rows, tmp_path / "figures.png")
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")


def test_every_bench_says_what_it_is_for() -> None:
    assert BENCHES
    for name in BENCHES:
        assert (ROOT / "bench" / "suites" / f"{name}.py").read_text().startswith('"""')


@pytest.mark.long
@pytest.mark.parametrize("name", BENCHES)
def test_bench_runs_and_writes_its_rows(name: str, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    subprocess.run([ROOT / "bench" / name, "--quick", "--json", figures], check=True)
    told = json.loads(figures.read_text())
    assert told["bench"] == name
    assert told["rows"]
