"""The rules of commit messages: a short imperative subject, then a blank line.

usage: subjects.py FILE

Exits 1 when the message in FILE breaks a rule. scripts/setup installs a commit-msg hook that runs
this program; .ci/prose.py checks the commits since these rules exist.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SUBJECT_COLUMNS_MAX = 72
# A subject that opens with one of these has no verb first.
_OPENERS = (
    "a an the this that these those what who whoever whose which of one and or but if when "
    "while after before for in on to with without by from as at it its we i you he they "
    "there here now not no some each every all both more also so because where how why "
    "their our new old"
)
# Imperatives that end as a participle or a third person does.
_IMPERATIVES = (
    "embed feed need seed shed speed exceed proceed succeed bleed breed bring ring ping "
    "string swing spring bias focus alias canvas"
)
_NO_IMPERATIVE = re.compile(r"^[a-z]+(ed|ing|[^s]s)$")
OPENERS = frozenset(_OPENERS.split())
IMPERATIVES = frozenset(_IMPERATIVES.split())
# git writes these by itself.
_BY_GIT = re.compile(r"Merge |Revert |(fixup|squash|amend)! ")
_SCISSORS = re.compile(r"^# -+ >8 -+$", re.M)


def message_errors(message: str) -> Iterator[str]:
    """Yield a line for each rule that a commit message breaks."""
    message = _SCISSORS.split(message)[0]
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if _BY_GIT.match(subject):
        return
    if len(subject) > SUBJECT_COLUMNS_MAX:
        yield f"subject of {len(subject)} characters; at most {SUBJECT_COLUMNS_MAX}: {subject}"
    word = subject.partition(" ")[0].rstrip(",:;.")
    plain = word.lower()
    if plain in OPENERS or (plain not in IMPERATIVES and _NO_IMPERATIVE.match(plain)):
        yield f'subject opens with "{word}", not with an imperative: {subject}'
    if word and not word[0].isupper():
        yield f"subject does not begin with a capital: {subject}"
    if len(lines) > 1 and lines[1].strip():
        yield f"no blank line after the subject: {subject}"


def history_errors(root: Path, rules: str = ".ci/subjects.py") -> Iterator[str]:
    """Yield the errors of the commits that follow the one which added the file ``rules``.

    A tree without git, and a clone too shallow to hold that commit, have nothing to check.
    """
    added = _git(root, "log", "--diff-filter=A", "--format=%H", "--", rules).split()
    if not added:
        return
    commits = ("log", "--no-merges", "--ancestry-path", "-z", "--format=%h%n%B", f"{added[-1]}..")
    for entry in filter(None, _git(root, *commits).split("\0")):
        commit, _, message = entry.partition("\n")
        yield from (f"commit {commit}: {error}" for error in message_errors(message.strip()))


def _git(root: Path, *arguments: str) -> str:
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main(arguments: list[str]) -> int:
    """Check one message and return the exit code."""
    errors = list(message_errors(Path(arguments[0]).read_text()))
    for error in errors:
        print(f"commit-msg: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
