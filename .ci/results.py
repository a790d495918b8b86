"""The tables of measurements: docs/results holds the figures, documents show them.

usage: results.py [--check | --adopt DOCUMENT | --bench FILE NAME] [ROOT]

Rewrites each table in README.md and docs/ that stands between two markers, from the JSON file that
the first one names:

    <!-- result: installed-sizes -->
    | package | Debian 12 |
    ...
    <!-- end -->

--check changes nothing and exits 1 if a table differs from its file. The gate does that.
--adopt gives each table of a document that has no markers yet its markers and its file, named after
the heading above. The commit and the date are those that recorded the table's newest row; all else
that the table does not say is null, to be filled in.
--bench makes docs/results/NAME.json from FILE, which a bench wrote with --json.

To add a result:
 1. Measure on a quiet machine, at a commit without local changes.
 2. Make docs/results/NAME.json: bench/X --json FILE, then scripts/results --bench FILE NAME. The
    result of another program is written with the same fields. null is for an unknown; never guess.
      schema    1
      title     a sentence: the quantity and the conditions
      commit    the commit that was measured; of a result older than these files, the commit that
                recorded it
      machine   processors, memory, kernel, devices
      date      YYYY-MM-DD
      seeds     a list of the seeds; [] where nothing is drawn at random
      command   the command that repeats the measurement
      columns   the headings
      rows      lists of cells, as long as columns. A cell is a text in Markdown, as a reader is to
                see it: "1,137", "6.38 %", "`streamfs`"
 3. Put the two markers where the table shall stand, docs/EXPERIMENTS.md as a rule, and say above
    them what a reader learns from the table.
 4. Run scripts/results, and commit the JSON file together with the document.

To change a figure, change the JSON file and run scripts/results. A figure in a table of README.md
must be in some row of docs/results (.ci/prose.py).
"""

import argparse
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = 1
_FIELDS = {
    "schema": int,
    "title": str,
    "commit": str | None,
    "machine": str | None,
    "date": str | None,
    "seeds": list | None,
    "command": str | None,
    "columns": list,
    "rows": list,
}
_TABLE = re.compile(
    r"^<!-- result: (?P<name>[\w-]+) -->\n(?P<table>.*?)^<!-- end -->$", re.M | re.S
)


# A shorter figure stands in many places.
_TELLING_CHARACTERS = 5
_SHOWN = re.compile(rf"{_TABLE.pattern}|^```.*?^```$", re.M | re.S)
_ANY_TABLE = re.compile(r"^\|.*\n\|[-|: ]+\|\n(?:\|.*\n)*", re.M)


class ResultError(Exception):
    """A file in docs/results that is no result."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"docs/results/{path.name}: {problem}")


class Result(NamedTuple):
    """A file of docs/results."""

    name: str
    fields: dict[str, Any]

    def text(self) -> str:
        """Return all cells of the rows."""
        return " ".join(cell for row in self.fields["rows"] for cell in row)

    def table(self) -> str:
        """Return the table in Markdown."""
        columns, rows = self.fields["columns"], self.fields["rows"]
        return "".join([_line(columns), "|" + "---|" * len(columns) + "\n", *map(_line, rows)])


def _line(cells: list[str]) -> str:
    inner = " | ".join(cell.replace("|", "\\|") for cell in cells)
    return f"| {inner} |\n".replace("|  |", "| |").replace("|  |", "| |")


def read(path: Path) -> Result:
    """Read one result.

    Raises ResultError.
    """
    try:
        fields = json.loads(path.read_text())
    except ValueError as error:
        raise ResultError(path, str(error)) from error
    if problem := _problem(fields):
        raise ResultError(path, problem)
    return Result(path.stem, fields)


def _problem(fields: Any) -> str | None:
    if not isinstance(fields, dict) or set(fields) != set(_FIELDS):
        return f"the fields must be {', '.join(_FIELDS)}"
    for name, kind in _FIELDS.items():
        if not isinstance(fields[name], kind):
            return f"{name} is {fields[name]!r}"
    if fields["schema"] != SCHEMA:
        return f"schema {fields['schema']} is unknown"
    for row in [fields["columns"], *fields["rows"]]:
        if not isinstance(row, list) or not all(isinstance(cell, str) for cell in row):
            return f"a cell is no text: {row}"
        if len(row) != len(fields["columns"]):
            return f"a row of {len(row)} cells: {row}"
    return None


def load(root: Path) -> list[Result]:
    """Read all results of a tree.

    Raises ResultError.
    """
    paths = (root / "docs/results").glob("*.json")
    return [read(path) for path in sorted(paths, key=lambda path: path.stem)]


def documents(root: Path) -> list[Path]:
    """Every document that may show a result."""
    return [p for p in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if p.is_file()]


def shown(text: str) -> set[str]:
    """Return the names of the results that a document shows."""
    return {match["name"] for match in _TABLE.finditer(text)}


def rendered(text: str, results: dict[str, Result]) -> str:
    """Return a document with its tables as the results say; unknown names are left alone."""

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        body = results[name].table() if name in results else match["table"]
        return f"<!-- result: {name} -->\n{body}<!-- end -->"

    return _TABLE.sub(table, text)


def adopt(root: Path, document: Path) -> None:
    """Make results of a document's tables that have no markers."""
    text = document.read_text()
    shown = [match.span() for match in _SHOWN.finditer(text)]
    names = {path.stem for path in (root / "docs/results").glob("*.json")}
    (root / "docs/results").mkdir(exist_ok=True)

    def marked(match: re.Match[str]) -> str:
        if any(begin <= match.start() < end for begin, end in shown):
            return match[0]
        lines = match[0].splitlines()
        titles = [document.stem, *re.findall(r"^#+ (.*)$", text[: match.start()], re.M)]
        title = titles[-1]
        name = _free_name(title, names)
        names.add(name)
        rows = [_cells(line) for line in lines[2:]]
        commit, date = _recorded(root, rows)
        fields = dict.fromkeys(_FIELDS) | {"schema": SCHEMA, "title": title}
        fields |= {"commit": commit, "date": date}
        fields |= {"columns": _cells(lines[0]), "rows": rows}
        (root / "docs/results" / f"{name}.json").write_text(_written(fields))
        return f"<!-- result: {name} -->\n{match[0]}<!-- end -->\n"

    document.write_text(_ANY_TABLE.sub(marked, text))


def _free_name(title: str, names: set[str]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-") or "result"
    taken = (f"{slug}-{number}" if number > 1 else slug for number in itertools.count(1))
    return next(name for name in taken if name not in names)


def _recorded(root: Path, rows: list[list[str]]) -> tuple[str | None, str | None]:
    """Return the commit and the date that brought the newest row of a table into a document.

    A row is looked for by its longest figure, so that it is found where it stood before a move.
    """
    found = []
    for row in rows:
        figure = max((cell for cell in row[1:] if re.search(r"\d", cell)), key=len, default="")
        if len(figure) < _TELLING_CHARACTERS:
            continue
        log = ["git", "-C", str(root), "log", f"-S{figure}", "--reverse", "--format=%at %h %as"]
        command = [*log, "--", "docs/*.md", "README.md"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if first := done.stdout.split("\n")[0].split():
            found.append((int(first[0]), first[1], first[2]))
    return max(found)[1:] if found else (None, None)


def take_bench(root: Path, source: Path, name: str) -> None:
    """Make the file of a result from a bench's JSON (bench/table.py).

    Raises ResultError.
    """
    target = root / "docs/results" / f"{name}.json"
    try:
        told = json.loads(source.read_text())
        machine = told["machine"]
        memory = round(machine["memory_bytes"] / 2**30)
        fields = {
            "schema": SCHEMA,
            "title": f"bench/{told['bench']}",
            "commit": told["commit"],
            "machine": f"{machine['cores']} cores ({machine['cpu']}), {memory} GiB, "
            f"Linux {machine['kernel']}",
            "date": told["date"],
            "seeds": None,
            "command": told["command"],
            "columns": ["", "value", "unit", "target"],
            "rows": [
                [row["name"], _value(row["value"]), row["unit"], row["target"] or ""]
                for row in told["rows"]
            ],
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultError(target, f"{source} is no bench's JSON: {error!r}") from error
    target.parent.mkdir(exist_ok=True)
    target.write_text(_written(fields))


def _value(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.4g}"


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _written(fields: dict[str, Any]) -> str:
    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    head = "".join(f"  {text(k)}: {text(v)},\n" for k, v in fields.items() if k != "rows")
    rows = ",\n".join(f"    {text(row)}" for row in fields["rows"])
    return f'{{\n{head}  "rows": [\n{rows}\n  ]\n}}\n'


def differences(root: Path) -> Iterator[str]:
    """Yield each difference between the documents of a tree and its results."""
    try:
        results = {one.name: one for one in load(root)}
    except ResultError as error:
        yield str(error)
        return
    places: set[str] = set()
    for path in documents(root):
        text, name = path.read_text(), str(path.relative_to(root))
        if rendered(text, results) != text:
            yield f"{name} differs from docs/results; run scripts/results"
        yield from (f"{name} shows {one}, which is not there" for one in shown(text) - set(results))
        places |= shown(text)
    yield from (
        f"docs/results/{one}.json is shown nowhere" for one in sorted(set(results) - places)
    )


def render(root: Path) -> None:
    """Rewrite the tables of all documents.

    Raises ResultError.
    """
    results = {one.name: one for one in load(root)}
    for path in documents(root):
        text = path.read_text()
        new = rendered(text, results)
        if new != text:
            path.write_text(new)
            print(f"{path.relative_to(root)} rewritten")


def main(arguments: list[str]) -> int:
    """Render, check or adopt, and return the exit code."""
    parser = argparse.ArgumentParser(prog="results", description="Tables from docs/results.")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--check", action="store_true", help="change nothing; exit 1 if one differs")
    modes.add_argument("--adopt", type=Path, metavar="DOCUMENT", help="make results of its tables")
    modes.add_argument(
        "--bench", nargs=2, metavar=("FILE", "NAME"), help="make NAME.json from a bench's JSON"
    )
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("root", nargs="?", type=Path, default=root, help="another tree")
    options = parser.parse_args(arguments)
    try:
        if options.adopt:
            adopt(options.root, options.adopt)
        if options.bench:
            take_bench(options.root, Path(options.bench[0]), options.bench[1])
        if not options.check:
            render(options.root)
    except ResultError as error:
        print(f"results: {error}", file=sys.stderr)
        return 1
    errors = list(differences(options.root))
    for line in errors:
        print(f"results: {line}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
