"""Each rule of .ci/prose.py notices a breach, and lets the text beside it pass."""

from pathlib import Path

import documents
import pytest
from prose import findings, main

RESULT = """{"schema": 1, "title": "t", "commit": null, "machine": null, "date": null,
"seeds": null, "command": null, "columns": ["a", "b"], "rows": [["x", ".76"], ["y", "1,137"]]}"""


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def rules(root: Path) -> list[tuple[str, str]]:
    """Return the place and the rule of each finding."""
    return [(one.place, one.rule) for one in findings(root)]


def of_comment(root: Path, comment: str) -> list[str]:
    write(root, "pmem/a.cc", f"int a;\n// {comment}\nint b;\n")
    return [rule for _, rule in rules(root)]


@pytest.mark.parametrize(
    "word", ["What", "Who", "Whoever", "Whose", "Of", "Those", "That", "One", "And"]
)
def test_an_opener_without_a_name_is_found(tmp_path: Path, word: str) -> None:
    assert of_comment(tmp_path, f"{word} waits for the flush is durable.") == ["opener"]
    assert of_comment(tmp_path, f"The flush ends. {word} waits for it is durable.") == ["opener"]


@pytest.mark.parametrize(
    "comment",
    [
        "Onerous and Whatever, Ofcourse, Andes.",
        "Flushes dirty pages. And_word is a name.",
        "The page whose flush failed; what the log holds stays.",
        "Blocks are freed, e.g. of a file.",
        "of a channel",
        "one per thread",
    ],
)
def test_the_same_letters_inside_a_sentence_pass(tmp_path: Path, comment: str) -> None:
    assert of_comment(tmp_path, comment) == []


@pytest.mark.parametrize("comment", ["what waits", "those that stay", "whose it is", "who asks"])
def test_a_fragment_that_stands_for_a_name_is_found(tmp_path: Path, comment: str) -> None:
    assert of_comment(tmp_path, comment) == ["opener"]


@pytest.mark.parametrize(
    "comment",
    [
        "Flushed, but not fenced.",
        "Stored last.",
        "Called before the first write.",
        "Frees the unit. Written by mkfs.",
        "Kept beside the log: two words.",
    ],
)
def test_a_participle_without_a_verb_is_found(tmp_path: Path, comment: str) -> None:
    assert of_comment(tmp_path, comment) == ["participle"]


@pytest.mark.parametrize(
    "comment",
    [
        "Dropped blocks go to the free list.",
        "Sorted by name, the list is searched in steps.",
        "Interrupted, it ends its children.",
        "Read and write a record.",
        "Set the flag.",
        "Need a lock.",
        "mkfs stores it last.",
    ],
)
def test_a_participle_with_a_verb_passes(tmp_path: Path, comment: str) -> None:
    assert of_comment(tmp_path, comment) == []


@pytest.mark.parametrize(
    "comment",
    [
        "The block is no longer mapped.",
        "The tool used to crash.",
        "A hash was tried.",
        "Tables made by hand.",
        "The key previously held.",
    ],
)
def test_history_in_a_comment_is_found(tmp_path: Path, comment: str) -> None:
    assert of_comment(tmp_path, comment) == ["history"]


def test_a_purpose_is_no_history(tmp_path: Path) -> None:
    assert of_comment(tmp_path, "The key is used to sign, and may only be used to sign.") == []


def test_a_history_word_that_is_quoted_passes(tmp_path: Path) -> None:
    assert of_comment(tmp_path, 'Prints "no longer mapped".') == []


def test_history_in_a_document_that_states_what_is_is_found(tmp_path: Path) -> None:
    text = "# T\n\nThe log\nno longer waits.\n"
    for name in ("README.md", "docs/DESIGN.md", "docs/design/data.md", "docs/EXPERIMENTS.md"):
        write(tmp_path, name, text)
    found = [("README.md:4", "history"), ("docs/DESIGN.md:4", "history")]
    assert rules(tmp_path) == [*found, ("docs/design/data.md:4", "history")]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.cc", "/// What waits.\n", 1),
        ("a.cc", "/* Frees it.\n   What waits. */\n", 2),
        ("a.cc", 'auto s = "//";  // What waits.\n', 1),
        ("a.cc", "int n = 1'000'000;  // What waits.\nchar c = '\"';\n", 1),
        ("a.cc", "int a;  // frees it. All\n        // of it. What waits.\n", 2),
        ("a.c", "int a; /* What waits. */\n", 1),
        ("a.py", '"""What waits."""\n', 1),
        ("a.py", 'def f() -> None:\n    """Free it.\n\n    What waits.\n    """\n', 4),
        ("a.py", "a = 1  # What waits.\n", 1),
        ("a.sh", 'a="${b#c}" # What waits.\n', 1),
        ("run", "#!/bin/sh\n# What waits.\n", 2),
        ("CMakeLists.txt", "# What waits.\n", 1),
    ],
)
def test_every_kind_of_comment_is_read(tmp_path: Path, path: str, text: str, line: int) -> None:
    write(tmp_path, path, text)
    assert rules(tmp_path) == [(f"{path}:{line}", "opener")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.c", "/* A line ends. A page\n * that waits. */\n"),
        ("a.cc", 'auto s = "// What waits.";\n'),
        ("a.cc", 'auto s = R"x(\n// What waits.\n)x";\n'),
        ("a.py", 's = "# What waits."\n'),
        ("a.py", 's = """\nWhat waits.\n"""\n'),
        ("a.sh", "echo '# What waits.'\n"),
        ("a.sh", "#!/bin/sh\n"),
        ("data.json", '{"#": "# What waits."}\n'),
        ("third_party/a.cc", "// What waits.\n"),
    ],
)
def test_text_that_is_no_comment_of_ours_passes(tmp_path: Path, path: str, text: str) -> None:
    write(tmp_path, path, text)
    assert rules(tmp_path) == []


def test_an_opener_in_a_documents_paragraph_is_found(tmp_path: Path) -> None:
    text = "# What it is\n\nA page\nwaits. **What** waits\n\n- Flushed, but not fenced.\n"
    write(tmp_path, "docs/A.md", text + "\n| What |\n|---|\n| What |\n\n```\nWhat\n```\n")
    assert rules(tmp_path) == [("docs/A.md:4", "opener"), ("docs/A.md:6", "participle")]


def test_a_long_document_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(documents.LINES_MAX, "README.md", 3)
    write(tmp_path, "README.md", "# T\n\na\n")
    assert rules(tmp_path) == []
    write(tmp_path, "README.md", "# T\n\na\nb\n")
    assert rules(tmp_path) == [("README.md:4", "length")]


def test_a_long_line_is_found_outside_tables_code_and_link_targets(tmp_path: Path) -> None:
    long = "word " * 20 + "end"
    write(tmp_path, "docs/A.md", f"# T\n\n{long}\n")
    assert rules(tmp_path) == [("docs/A.md:3", "line")]
    target = "#" + "t" * 90
    link = f"[a link whose target does not count]({target}) here"
    code = f"```\n{long}\n```"
    table = f"| a |\n|---|\n| {long} |"
    write(tmp_path, "docs/A.md", f"# T\n\n{code}\n\n{table}\n\n# {'t' * 90}\n\n{link}\n")
    assert rules(tmp_path) == []


def test_a_long_paragraph_is_found(tmp_path: Path) -> None:
    write(tmp_path, "docs/A.md", "# T\n\n" + "line\n" * 8 + "\n" + "- " + "line\n  " * 8)
    assert rules(tmp_path) == []
    write(tmp_path, "docs/A.md", "# T\n\n" + "line\n" * 9)
    assert rules(tmp_path) == [("docs/A.md:3", "paragraph")]


def figures(*cells: str) -> str:
    rows = "".join(f"| 1 {cell} | {cell} |\n" for cell in cells)
    return f"# T\n\n| 64 | 65 |\n|---|---|\n{rows}"


def test_a_figure_of_readme_that_is_in_no_result_is_found(tmp_path: Path) -> None:
    write(tmp_path, "docs/results/r.json", RESULT)
    shown = "<!-- result: r -->\n| a | b |\n|---|---|\n| x | .76 |\n| y | 1,137 |\n<!-- end -->\n"
    write(tmp_path, "docs/E.md", shown)
    write(tmp_path, "README.md", figures("0.76", "**1137** words", "ext4", "`-o n=5`", ""))
    assert rules(tmp_path) == []
    write(tmp_path, "README.md", figures("0.76 of 1,138", "12 %"))
    assert rules(tmp_path) == [("README.md:5", "figure"), ("README.md:6", "figure")]


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    write(tmp_path, "docs/B.md", "# The `log`, again\n\n## Twice\n\n## Twice\n")
    alive = ("B.md", "B.md#the-log-again", "B.md#twice-1", "#here", "https://x.org/#y", "../docs")
    links = "".join(f"[t]({one})\n" for one in alive)
    write(tmp_path, "docs/A.md", f"# Here\n\n{links}")
    assert rules(tmp_path) == []
    write(tmp_path, "docs/A.md", "# Here\n\n[t](C.md)\n\n[t](B.md#logs) [t](#there)\n")
    assert rules(tmp_path) == [("docs/A.md:3", "link")] + [("docs/A.md:5", "link")] * 2


def test_a_table_that_differs_from_its_result_is_found(tmp_path: Path) -> None:
    write(tmp_path, "docs/results/r.json", RESULT)
    write(tmp_path, "docs/E.md", "<!-- result: r -->\n| a | b |\n|---|---|\n<!-- end -->\n")
    assert rules(tmp_path) == [("docs/results", "result")]


def test_the_exit_code_and_the_counts_tell_a_bad_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "a.sh", "# What waits.\n")
    assert main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == ['a.sh:1: opener: opens with "What": What waits.', "prose: opener 1"]


def test_a_tree_without_findings_is_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "a.sh", "# Frees the unit.\n")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "prose: no findings\n"
