"""The byte tables of docs/FORMAT.md say what the structures in the headers say."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/FORMAT.md"
LAYOUT, LOG, TRACE = "fuse-fs/meta/layout.h", "fuse-fs/meta/log_format.h", "trace/trace.h"
# Heading, header, structures in the order of the tables below the heading.
TABLES = (
    ("Superblock", LAYOUT, ("Superblock",)),
    ("Unit header", LAYOUT, ("UnitHeader",)),
    ("Directory slot", LAYOUT, ("DirSlot",)),
    ("Extent slot", LAYOUT, ("ExtentSlot",)),
    ("vStream slot", LAYOUT, ("VStreamSlot",)),
    ("Journal record", LAYOUT, ("RecordHeader",)),
    ("Intent log", LAYOUT, ("IntentEntry", "ExpiredSlot")),
    ("Label", LAYOUT, ("DataLabel",)),
    ("Attachments", LAYOUT, ("AttachmentRecord",)),
    ("Metadata log", LOG, ("LogChunkHeader", "LogCondition")),
    ("Snapshot area", LOG, ("SnapshotHeader",)),
    ("The stored model", "base/wire/stored_model.h", ("StoredModel",)),
)
# Types whose bytes are not in their name; SegmentList for seven regions of six segments.
SIZES = {"ModelBuffer": 5_931_720, "char": 1, "Superblock": 944, "SegmentList": 6 * 16}
COUNTS = {
    "kModelVStreams": 65536,
    "kMaxLogExtensions": 4,
    "static_cast<size_t>(RegionKind::kCount)": 7,
}
FIELD = re.compile(r"^\s*([\w:]+)\s+(\w+)(?:\[(.+)\])?;", re.M)

Row = tuple[int, int, str]  # offset, bytes, name


def fields(header: str, name: str) -> list[Row]:
    """Return the fields of a structure without padding, as the compiler lays them out."""
    text = (ROOT / header).read_text()
    body = re.search(rf"^struct {name} {{\n(.*?)^}};", text, re.M | re.S)
    assert body, name
    rows, offset = [], 0
    for kind, field, count in FIELD.findall(body[1]):
        bits = re.fullmatch(r"u?int(\d+)_t", kind)
        each = int(bits[1]) // 8 if bits else SIZES[kind]
        size = each * (COUNTS.get(count) or int(count or 1))
        if not field.startswith("reserved"):
            rows.append((offset, size, field))
        offset += size
    return rows


def tables(heading: str) -> Iterator[list[Row]]:
    """Yield the byte tables of a section of the page."""
    section = re.search(rf"^###? {heading}\n(.*?)(?=^##)", PAGE.read_text(), re.M | re.S)
    assert section, heading
    for table in re.findall(r"^\| offset \| size \|.*\n\|---.*\n((?:\|.*\n)+)", section[1], re.M):
        cells = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
        yield [(int(at), int(size), name) for _, at, size, name, *_ in cells if name[0].isalpha()]


@pytest.mark.parametrize(("heading", "header", "names"), TABLES)
def test_a_table_has_the_fields_of_its_structure(
    heading: str, header: str, names: tuple[str, ...]
) -> None:
    assert list(tables(heading)) == [fields(header, name) for name in names]


def test_every_byte_table_is_compared() -> None:
    compared = sum(len(names) for _, _, names in TABLES)
    assert PAGE.read_text().count("\n| offset | size | field |") == compared


def test_the_inode_table_has_the_words_of_the_structure() -> None:
    section = re.search(r"^### Inode\n(.*?)(?=^##)", PAGE.read_text(), re.M | re.S)
    assert section
    shown = dict(re.findall(r"^\| (\d+) \| ([\w, ]+?) \|", section[1].split("| flag |")[0], re.M))
    for offset, _, field in fields(LAYOUT, "InodeImage"):
        if offset % 8 == 0 and field not in ("blocks_vstream", "inline_area"):
            assert field in shown[str(offset // 8)].split(", "), field


def test_the_trace_table_has_the_fields_of_a_record() -> None:
    shown = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|", PAGE.read_text(), re.M)
    found = {name.removesuffix("_bytes"): (int(at), int(size)) for name, at, size in shown}
    names = ["ts_us", "offset", "length", "context", "request", "vstream", "pstream", "op"]
    offset = 0
    for name, size in zip(names, (8, 8, 8, 4, 4, 2, 2, 1), strict=True):
        assert found[name] == (offset, size), name
        offset += size
