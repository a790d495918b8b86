"""The rules of Markdown documents: lengths, links, history, and README's figures."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import results
from markdown_it import MarkdownIt
from markdown_it.token import Token
from sentences import history_words, sentence_errors

# The lines that a document may have.
LINES_MAX = {"README.md": 130, "docs/DESIGN.md": 450}
COLUMNS_MAX = 100
PARAGRAPH_LINES_MAX = 8
# A program writes these whole.
GENERATED = frozenset({"docs/REPRODUCTION.md"})
# Documents that state what is.
_STATES = re.compile(r"README\.md$|docs/DESIGN[^/]*$|docs/design/")

_TARGET = re.compile(r"\]\([^)]*\)|<?https?://\S+|^\[[^\]]+\]: .*")
_FIGURE = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?![\w])")
_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:")
_ID = re.compile(r"""<[^>]*\b(?:id|name)=["']([^"']+)["']""")


class Finding(NamedTuple):
    """A rule that is broken, and where."""

    place: str
    rule: str
    text: str


def figures_of(text: str) -> Iterator[float]:
    """Yield the numbers in a text; ``.76`` is 0.76, and ``1,137`` is 1137."""
    for match in _FIGURE.finditer(text):
        if match[0].strip("."):
            yield float(match[0].replace(",", ""))


class Document:
    """A Markdown file, parsed when it is first needed."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.text = (root / name).read_text()

    @cached_property
    def tokens(self) -> list[Token]:
        """The parser's blocks."""
        return MarkdownIt("commonmark").enable("table").parse(self.text)

    @cached_property
    def anchors(self) -> set[str]:
        """The fragments that a link to this document may have, as GitHub makes them."""
        anchors = set(_ID.findall(self.text))
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if before.type == "heading_open":
                plain = "".join(child.content for child in token.children or ())
                slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
                same = sum(1 for one in anchors if one == slug or one.startswith(f"{slug}-"))
                anchors.add(f"{slug}-{same}" if slug in anchors else slug)
        return anchors

    def finding(self, line: int, rule: str, text: str) -> Finding:
        """Return a finding in a line, counted from 0 as the parser does."""
        return Finding(f"{self.name}:{line + 1}", rule, text)

    def long(self) -> Iterator[Finding]:
        """Yield what is longer than it may be."""
        lines = self.text.splitlines()
        most = LINES_MAX.get(self.name)
        if most is not None and len(lines) > most:
            yield self.finding(most, "length", f"{len(lines)} lines; at most {most}")
        exempt: set[int] = set()
        for token in self.tokens:
            if token.map and token.type in ("table_open", "fence", "code_block", "html_block"):
                exempt.update(range(*token.map))
            elif token.map and token.type == "paragraph_open":
                count = token.map[1] - token.map[0]
                if count > PARAGRAPH_LINES_MAX:
                    yield self.finding(token.map[0], "paragraph", f"paragraph of {count} lines")
        for number, line in enumerate(lines):
            columns = len(_TARGET.sub("]", line))
            if columns > COLUMNS_MAX and number not in exempt:
                yield self.finding(number, "line", f"line of {columns} columns")

    def history(self) -> Iterator[Finding]:
        """Yield the history in a document that states what is."""
        if _STATES.match(self.name):
            for token in self.tokens:
                if token.type == "inline" and token.map:
                    for match in history_words(token.content):
                        line = token.map[0] + token.content.count("\n", 0, match.start())
                        yield self.finding(line, "history", f'"{match[0]}" tells history')

    def openers(self) -> Iterator[Finding]:
        """Yield the paragraphs' sentences that open with no name."""
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if before.type == "paragraph_open" and token.map:
                # As long as the text, so that places stay: emphasis may begin a sentence.
                text = token.content.replace("**", "  ").replace("\n", " ")
                blank = len(text) - len(text.lstrip())
                for at, rule, said in sentence_errors(text.lstrip()):
                    line = token.map[0] + token.content.count("\n", 0, at + blank)
                    yield self.finding(line, rule, said)

    def dead_links(self) -> Iterator[Finding]:
        """Yield the links to a file or a heading that is not there."""
        for token in self.tokens:
            for child in token.children or () if token.map else ():
                target = child.attrGet("href") or child.attrGet("src")
                if target and not _ELSEWHERE.match(str(target)) and not self._leads(str(target)):
                    assert token.map
                    yield self.finding(token.map[0], "link", f"dead link: {target}")

    def _leads(self, target: str) -> bool:
        name, _, anchor = target.partition("#")
        path = (self.root / self.name).parent / name if name else self.root / self.name
        if not path.exists():
            return False
        if not anchor or path.suffix != ".md":
            return True
        other = Document(self.root, str(path.resolve().relative_to(self.root.resolve())))
        return anchor in other.anchors

    def cells(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each table cell right of the first column; no code."""
        column = 0
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            column = 0 if before.type == "tr_open" else column + (before.type == "td_open")
            if before.type == "td_open" and column > 1 and token.map:
                texts = (one.content for one in token.children or () if one.type == "text")
                yield token.map[0], " ".join(texts)


def figure_findings(root: Path) -> Iterator[Finding]:
    """Yield the figures of README's tables that no result in docs/results has."""
    if not (root / "README.md").is_file():
        return
    document = Document(root, "README.md")
    known = {figure for one in results.load(root) for figure in figures_of(one.text())}
    for line, cell in document.cells():
        for figure in figures_of(cell):
            if figure not in known:
                yield document.finding(line, "figure", f"{figure:g} is not in docs/results")


def document_findings(root: Path, name: str) -> Iterator[Finding]:
    """Yield what a document breaks of the rules for all documents."""
    document = Document(root, name)
    yield from document.dead_links()
    if name not in GENERATED:
        yield from document.long()
        yield from document.openers()
        yield from document.history()
