"""docs/results and the tables that show it."""

import json
from pathlib import Path
from typing import Any

import pytest
import results
from bench.table import Target, row, to_json, unavailable

ROOT = Path(__file__).resolve().parents[2]
RESULT: dict[str, Any] = {
    "schema": 1,
    "title": "t",
    "commit": None,
    "machine": "2 cores",
    "date": "2026-01-02",
    "seeds": [1, 2],
    "command": "bench/x",
    "columns": ["", "b"],
    "rows": [["`a|b`", ".76"], ["y", ""]],
}
TABLE = "| | b |\n|---|---|\n| `a\\|b` | .76 |\n| y | |\n"


def tree(root: Path, document: str, **changes: Any) -> Path:
    (root / "docs/results").mkdir(parents=True)
    (root / "docs/results/r.json").write_text(json.dumps(RESULT | changes))
    (root / "docs/E.md").write_text(document)
    return root


def marked(table: str) -> str:
    return f"Before.\n\n<!-- result: r -->\n{table}<!-- end -->\n\nAfter.\n"


def test_rendering_the_project_gives_no_difference() -> None:
    assert list(results.differences(ROOT)) == []
    assert len(results.load(ROOT)) > 5


@pytest.mark.parametrize("table", ["", "| old |\n|---|\n| 1 |\n", TABLE])
def test_a_table_is_rewritten_in_its_place(tmp_path: Path, table: str) -> None:
    tree(tmp_path, marked(table))
    assert results.main([str(tmp_path)]) == 0
    assert (tmp_path / "docs/E.md").read_text() == marked(TABLE)
    assert list(results.differences(tmp_path)) == []


def test_a_check_changes_nothing(tmp_path: Path) -> None:
    tree(tmp_path, marked("| old |\n"))
    assert results.main(["--check", str(tmp_path)]) == 1
    assert (tmp_path / "docs/E.md").read_text() == marked("| old |\n")


def test_a_document_without_markers_stays_as_it_is(tmp_path: Path) -> None:
    tree(tmp_path, marked(TABLE))
    (tmp_path / "README.md").write_text("| old |\n|---|\n")
    assert results.main([str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_text() == "| old |\n|---|\n"


def test_tables_without_markers_are_adopted_without_another_change(tmp_path: Path) -> None:
    code = f"```\n{TABLE}```\n"
    tree(tmp_path, f"# All\n\n{marked(TABLE)}\n## The widths\n\n{TABLE}\n{TABLE}\n{code}")
    assert results.main(["--adopt", str(tmp_path / "docs/E.md"), str(tmp_path)]) == 0
    adopted = {one.name: one.fields for one in results.load(tmp_path)}
    assert list(adopted) == ["r", "the-widths", "the-widths-2"]
    assert adopted["the-widths"]["rows"] == RESULT["rows"]
    assert adopted["the-widths"]["title"] == "The widths"
    assert adopted["the-widths"]["seeds"] is None
    tables = [marked(TABLE).replace(" r ", f" {name} ").split("\n\n")[1] for name in adopted]
    text = (tmp_path / "docs/E.md").read_text()
    assert text == (
        f"# All\n\nBefore.\n\n{tables[0]}\n\nAfter.\n\n## The widths\n\n"
        f"{tables[1]}\n\n{tables[2]}\n\n{code}"
    )


def test_a_benchs_json_becomes_a_result(tmp_path: Path) -> None:
    tree(tmp_path, marked(TABLE))
    rows = [row("slow", 1234, "ns", Target(2)), unavailable("none", "no disk")]
    (tmp_path / "bench.json").write_text(json.dumps(to_json("meta", rows)))
    results.main(["--bench", str(tmp_path / "bench.json"), "r", str(tmp_path)])
    (made,) = results.load(tmp_path)
    assert made.fields["rows"] == [
        ["slow", "1,234", "ns", "≤ 2"],
        ["none", "not measured", "no disk", ""],
    ]
    assert made.fields["commit"] == to_json("meta", [])["commit"]
    assert "| slow | 1,234 | ns | ≤ 2 |" in (tmp_path / "docs/E.md").read_text()
    (tmp_path / "bench.json").write_text("{}")
    assert results.main(["--bench", str(tmp_path / "bench.json"), "r", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"schema": 2}, "schema 2 is unknown"),
        ({"seeds": "1"}, "seeds is '1'"),
        ({"more": 1}, "the fields must be"),
        ({"rows": [["a"]]}, "a row of 1 cells"),
        ({"rows": [["a", 1]]}, "a cell is no text"),
    ],
)
def test_a_bad_file_is_named_with_its_mistake(
    tmp_path: Path, changes: dict[str, Any], error: str
) -> None:
    tree(tmp_path, marked(TABLE), **changes)
    (found,) = results.differences(tmp_path)
    assert found.startswith("docs/results/r.json: ")
    assert error in found
    assert results.main([str(tmp_path)]) == 1


def test_a_result_that_no_document_shows_is_found(tmp_path: Path) -> None:
    assert list(results.differences(tree(tmp_path, "Before.\n"))) == [
        "docs/results/r.json is shown nowhere"
    ]


def test_a_table_of_no_result_is_found(tmp_path: Path) -> None:
    tree(tmp_path, marked(TABLE) + marked(TABLE).replace(" r ", " other "))
    assert list(results.differences(tmp_path)) == ["docs/E.md shows other, which is not there"]
