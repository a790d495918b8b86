"""Traces have one reader: `ssd-sim replay` and `streamfs-lab replay` accept the same files."""

import gzip
import struct
import sys
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, run

HEADER = "ts_us,op,offset_bytes,length_bytes\n"
GOOD = "".join(f"{i},W,{i % 64 * 4096},4096\n" for i in range(256))
MAGIC = b"SFSTRC01"


def binary(version: int, record_bytes: int, cut: int = 0) -> bytes:
    """A binary trace of 256 writes, without its last bytes."""
    fields = ((i, i % 64 * 4096, 4096, 0, 0, 0, 0, b"W") for i in range(256))
    rows = [struct.pack("<QQQIIHHc3x", *each) for each in fields]
    data = MAGIC + struct.pack("<II", version, record_bytes) + b"".join(rows)
    return data[: len(data) - cut]


def answers(path: Path) -> tuple[tuple[int, str], tuple[int, str]]:
    """Exit code and standard error of ssd-sim, and of the replay in Python."""
    replays = ([BIN / "ssd-sim", "replay"], [sys.executable, "-m", "streamfs_lab", "replay"])
    found = [run(*words, path, check=False) for words in replays]
    one, other = ((each.returncode, each.stderr) for each in found)
    return one, other


@pytest.mark.parametrize(
    "content",
    [
        pytest.param((HEADER + GOOD).encode(), id="text with a header line"),
        pytest.param(GOOD.encode(), id="text without a header line"),
        pytest.param(f"# by hand\n# trace version 1\n\n{GOOD}".encode(), id="comments"),
        pytest.param(f"{HEADER.strip()},colour\n1,W,0,4096,red\n".encode(), id="unknown column"),
        pytest.param(b"ts_us,length_bytes,op,offset_bytes\n1,4096,W,0\n", id="other order"),
        pytest.param(gzip.compress(GOOD.encode()), id="compressed text"),
        pytest.param(binary(1, 40), id="binary"),
        pytest.param(gzip.compress(binary(1, 40)), id="compressed binary"),
    ],
)
def test_both_replays_accept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    assert [code for code, _ in answers(path)] == [0, 0]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a,b\n1,2\n", "{}: line 1: ts_us 'a'"),
        (b"op,offset_bytes,length_bytes\nW,0,4096\n", "{}: line 1: ts_us 'op'"),
        (b"ts_us,op,offset_bytes\n1,W,0\n", "{}: line 2: no length_bytes"),
        (f"{HEADER}1,w,0,4096\n".encode(), "{}: line 2: operation 'w': R, W or T"),
        (f"{HEADER}1,W,0,0\n".encode(), "{}: line 2: length 0"),
        (f"{HEADER}1,W,-1,4096\n".encode(), "{}: line 2: offset_bytes '-1'"),
        (b"1,W,0,8589934592\n", "{}: line 1: length 8589934592: at most 4294967296 in one write"),
        (b"1,W,0,4096,65536\n", "{}: line 1: vstream '65536'"),
        (f"# trace version 2\n{GOOD}".encode(), "{}: trace version 2, "),
        (gzip.compress(GOOD.encode())[:-9], "{}: line "),
        (binary(2, 40), "{}: trace version 2, "),
        (binary(1, 48), "{}: trace version 1, "),
        (binary(1, 40, cut=9), "{}: record 256: cut off"),
    ],
)
def test_both_replays_refuse_with_the_same_complaint(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    for code, said in answers(path):
        assert code in (65, 66)
        assert f": {complaint.format(path)}" in said
