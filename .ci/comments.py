"""The prose in source files: comments and docstrings, as paragraphs that know their lines."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Strings are matched only so that a comment sign inside one is passed over.
_C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\((?s:.*?)\)(?P=mark)"'
    r"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"
    r"|(?P<line>//[^\n]*)"
    r"|(?P<block>/\*(?s:.*?)\*/)"
)
_C_SIGN = re.compile(r"^(?://[/!]?<?|/\*+|\*+/|\*(?!/))\s?")
# A comment sign in the middle of a shell line follows blank space; quotes before it are closed.
_SHELL_COMMENT = re.compile(r"""^(?:[^'"#]|"[^"]*"|'[^']*'|(?<=[^\s])#)*?(?<!\S)(?P<sign>\#+)""")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_TOOL = re.compile(r"NOLINT|clang-format|noqa|type: ignore|shellcheck |fmt: |ruff: |mypy: |IWYU")

C_SUFFIXES = (".cc", ".h", ".c", ".cpp", ".hpp", ".S")
PYTHON_SUFFIXES = (".py", ".pyi")
# A `#` begins a comment in these as in the shell.
HASH_SUFFIXES = (
    ".sh",
    ".cmake",
    ".toml",
    ".txt",
    ".in",
    ".service",
    ".timer",
    ".conf",
    ".rules",
    ".preset",
    ".map",
    ".clang-tidy",
    ".clang-format",
    ".gitignore",
)


class Piece(NamedTuple):
    """A line of a comment, without its sign."""

    line: int
    column: int
    text: str
    alone: bool  # nothing but the comment stands in its line


class Paragraph(NamedTuple):
    """Text of neighbouring comment lines; ``starts`` tells where each line begins in it."""

    text: str
    starts: tuple[tuple[int, int], ...]  # (offset, line)

    def line_of(self, offset: int) -> int:
        """Return the line of the file in which ``offset`` of the text lies."""
        return [line for start, line in self.starts if start <= offset][-1]


def comment_paragraphs(path: Path) -> Iterator[Paragraph]:
    """Yield the prose of a source file; nothing for a file in no known language."""
    if not path.name.endswith(C_SUFFIXES + PYTHON_SUFFIXES + HASH_SUFFIXES) and not _is_script(
        path
    ):
        return
    text = path.read_text()
    if path.suffix in C_SUFFIXES:
        yield from _paragraphs(_c_pieces(text))
    elif path.suffix in PYTHON_SUFFIXES:
        yield from _paragraphs(_python_pieces(text))
        for pieces in _docstrings(text):
            yield from _paragraphs(pieces)
    else:
        yield from _paragraphs(_shell_pieces(text))


def _is_script(path: Path) -> bool:
    """Whether a file without a suffix begins as a script does, with a comment."""
    if path.suffix:
        return False
    with path.open("rb") as file:
        return file.read(1) == b"#"


def _c_pieces(text: str) -> Iterator[Piece]:
    line, at = 1, 0
    for match in _C_TOKEN.finditer(text):
        if match["line"] is None and match["block"] is None:
            continue
        line += text.count("\n", at, match.start())
        at = match.start()
        edge = text.rfind("\n", 0, at) + 1
        alone = not text[edge:at].strip()
        for number, part in enumerate(match[0].removesuffix("*/").split("\n")):
            body = _C_SIGN.sub("", part.strip(), count=1)
            yield Piece(line + number, at - edge, body, alone or number > 0)


def _python_pieces(text: str) -> Iterator[Piece]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            yield Piece(*token.start, token.string.lstrip("#").removeprefix(" "), alone)


def _docstrings(text: str) -> Iterator[list[Piece]]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
            continue
        if isinstance(first.value.value, str):
            lines = enumerate(first.value.value.split("\n"), start=first.lineno)
            yield [Piece(number, first.col_offset, line, alone=True) for number, line in lines]


def _shell_pieces(text: str) -> Iterator[Piece]:
    for number, line in enumerate(text.splitlines(), start=1):
        if "#" in line and not line.startswith("#!") and (match := _SHELL_COMMENT.match(line)):
            column = match.start("sign")
            body = line[match.end() :].removeprefix(" ")
            yield Piece(number, column, body, alone=not line[:column].strip())


def _paragraphs(pieces: Iterator[Piece] | list[Piece]) -> Iterator[Paragraph]:
    """Join lines of one comment: neighbours that stand at one column."""
    held: list[Piece] = []
    for piece in pieces:
        text = piece.text.strip()
        joins = (
            bool(held)
            and piece.alone
            and (piece.line, piece.column) == (held[-1].line + 1, held[-1].column)
        )
        if held and (not joins or not text or _LIST_ITEM.match(piece.text)):
            yield _paragraph(held)
            held = []
        if text and not _TOOL.match(text):
            held.append(piece)
    if held:
        yield _paragraph(held)


def _paragraph(pieces: list[Piece]) -> Paragraph:
    starts, text = [], ""
    for piece in pieces:
        starts.append((len(text), piece.line))
        text += (_LIST_ITEM.sub("", piece.text) if not text else piece.text).strip() + " "
    return Paragraph(text.rstrip(), tuple(starts))
