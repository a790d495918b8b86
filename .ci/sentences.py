"""The rules of sentences, for comments and documents alike. prose.py describes them."""

import re
from collections.abc import Iterator

_SENTENCE = re.compile(r"""(?:^|(?<=[.!?])["')`]*\s+)(?=\S)""")
_OPENER = re.compile(r"(?:What|Who|Whoever|Whose|Of|Those|That|One|And)\b")
_FRAGMENT = re.compile(r"(?:what|who|whoever|whose|those|that)\b")
_PARTICIPLE = re.compile(
    r"(?:[A-Z][a-z]+ed|Held|Kept|Made|Taken|Given|Known|Done|Seen|Found|Sent|Told|Lost|Left|Drawn"
    r"|Set|Shown|Meant|Built|Begun|Chosen|Broken|Hidden|Written)"
    r"(?:[;:.]|$|,(?! (?:it|they|this|these|the|a|an|each|no)\b)"
    r"| (?:after|again|alone|also|anew|apart|as|at|because|before|beside|but|"
    r"by|even|first|for|from|here|if|in|inside|into|last|not|of|on|once|"
    r"only|out|outside|over|per|since|so|then|there|through|to|together|"
    r"too|under|unless|until|up|when|where|while|whole|with|without)\b)"
)
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|does|do|did|can|cannot|may|must|will|would|should|could"
    r"|might|needs?)\b"
)
# "is used to do", "be used to do": a purpose. "the tool used to do": history.
_HISTORY = re.compile(
    r"\bno\s+longer\b|\bwas\s+tried\b|\bby\s+hand\b|\bpreviously\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bwas )(?<!\bwere )(?<!\bbeen )(?<!\bonly )(?<!\bnot )"
    r"\bused\s+to\b",
    re.I,
)
_QUOTED = re.compile(r'"[^"\n]*"')


def sentence_errors(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the place, the rule and a description of each opener that a paragraph may not have."""
    begins = [match.end() for match in _SENTENCE.finditer(text)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        sentence = text[begin:end].strip()
        match = _OPENER.match(sentence) or (_FRAGMENT.match(sentence) if begin == 0 else None)
        if match:
            yield begin, "opener", f'opens with "{match[0]}": {sentence[:60]}'
        elif _PARTICIPLE.match(sentence) and not _AUXILIARY.search(sentence):
            yield begin, "participle", f"participle without a verb: {sentence[:60]}"


def history_words(text: str) -> Iterator[re.Match[str]]:
    """Yield each phrase that tells how things were; a phrase in double quotes is only named."""
    return _HISTORY.finditer(_QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text))
