"""House rules of language: the floor under what comments, documents and commit messages say.

usage: prose.py [ROOT]

Prints one line for each finding and the number of findings by rule; exits 1 if there are any.

opener      A sentence of a comment, or of a paragraph of a document, opens with What, Who, Whoever,
            Whose, Of, Those, That, One or And; or a comment or a paragraph opens with what, who,
            whoever, whose, those or that.
participle  A sentence opens with a past participle before a comma, a preposition or its end, and
            has no auxiliary verb: "Flushed, but not fenced." A participle before a noun ("Dropped
            blocks go …") is an adjective and passes. Participles that are spelled like an
            imperative (read, put, cut) pass, and so do words in -ing, which may be subjects.
history     Comments, README.md and docs/DESIGN* say "no longer", "used to" (but not "is used to"),
            "was tried", "by hand" or "previously", outside double quotes.
length      README.md or docs/DESIGN.md is too long (documents.LINES_MAX).
line        A document's line is over 100 columns. Tables, code and link targets do not count.
paragraph   A document's paragraph is over eight lines.
figure      A number in a table of README.md is in no row of docs/results. The first column and code
            do not count.
link        A relative link leads to no file, or its #anchor to no heading.
result      A table of a document differs from its file in docs/results (scripts/results).
commit      A commit since these rules exist breaks those of subjects.py.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import results
from comments import comment_paragraphs
from documents import Finding, document_findings, figure_findings
from sentences import history_words, sentence_errors
from subjects import history_errors

# Other people's text, and text that a program writes.
EXCLUDED = ("third_party/", "build/", "requirements.lock")


def project_files(root: Path) -> Iterator[str]:
    """Yield the paths of the project's own files, links to others left out."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        names = done.stdout.splitlines()
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    for name in sorted(set(names)):
        path = root / name
        if not name.startswith(EXCLUDED) and path.is_file() and not path.is_symlink():
            yield name


def comment_findings(root: Path, name: str) -> Iterator[Finding]:
    """Yield the findings in the comments of a source file."""
    for paragraph in comment_paragraphs(root / name):
        for at, rule, text in sentence_errors(paragraph.text):
            yield Finding(f"{name}:{paragraph.line_of(at)}", rule, text)
        for match in history_words(paragraph.text):
            place = f"{name}:{paragraph.line_of(match.start())}"
            yield Finding(place, "history", f'"{match[0]}" tells history')


def findings(root: Path) -> Iterator[Finding]:
    """Yield every finding in a tree."""
    for name in project_files(root):
        if name.endswith(".md"):
            yield from document_findings(root, name)
        else:
            yield from comment_findings(root, name)
    yield from figure_findings(root)
    for error in results.differences(root):
        yield Finding("docs/results", "result", error)
    for error in history_errors(root):
        yield Finding("git log", "commit", error)


def main(arguments: list[str]) -> int:
    """Check one tree and return the exit code."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(findings(root))
    for one in found:
        print(f"{one.place}: {one.rule}: {one.text}")
    counts = Counter(one.rule for one in found)
    by_rule = ", ".join(f"{rule} {count}" for rule, count in sorted(counts.items()))
    print(f"prose: {by_rule or 'no findings'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
