"""Advice before anyone moves: what is recorded, what is predicted, what is refused."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classifierd import advise, blocktrace, recording, spacemap
from classifierd.advise import (
    MODELS,
    Log,
    Machine,
    Recorded,
    fitted,
    predict,
    tagged,
    without,
)
from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE, EXIT_USAGE
from classifierd.contest import CANDIDATES, Contest
from classifierd.records import make
from classifierd.requests import Requests
from classifierd.spacemap import held
from classifierd.traces import telemetry
from writes import hot_and_cold_files

LINES = """\
     jbd2/loop0-8-812     [001] .....    10.000100: block_rq_issue: 7,0 WSM 8192 () 4096 + 16 be,3,0 [jbd2/loop0-8]
  kworker/u4:1-77      [000] .....    10.000200: block_rq_issue: 7,0 W 4096 () 2048 + 8 be,3,4 [kworker/u4:1]
 my prog-2 x-99      [000] .....    11.500000: block_rq_issue: 7,0 DS 65536 () 8192 + 128 none,0,0 [my prog-2 x]
  cat-5      [000] .....    11.600000: block_rq_issue: 7,0 R 4096 () 2048 + 8 none,0,0 [cat]
  kworker/0:1-9      [000] .....    11.700000: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:1]
  kworker/0:1H-77      [000] .....    11.800000: block_rq_issue: 7,0 WFSM 32768 () 9000 + 64 none,0,0 [kworker/0:1H]
  xfsaild/sda-78      [000] .....    11.900000: block_rq_issue: 7,0 WM 4096 () 9100 + 8 none,0,0 [xfsaild/sda]
CPU:1 [LOST 12 EVENTS]
nonsense
"""  # noqa: E501


def test_events_are_read_as_the_kernel_prints_them() -> None:
    made = blocktrace.collect(LINES.splitlines(), 0, 1 << 30)
    assert made.lost == 12
    found = made.requests
    columns = (found.trim, found.offset_bytes, found.length_bytes, found.log)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (False, 4096 * 512, 8192, True),
        (False, 2048 * 512, 4096, False),
        (True, 8192 * 512, 65536, False),
        (False, 9000 * 512, 32768, True),  # XFS's log: the flush before it is gone by now
        (False, 9100 * 512, 4096, True),
    ]
    assert found.time_us[2] - found.time_us[0] == 1_499_900


def test_a_partition_sees_its_own_writes_from_its_beginning() -> None:
    found = blocktrace.collect(LINES.splitlines(), 4096 * 512, 4100 * 512).requests
    assert found.offset_bytes.tolist() == [0, 4096 * 512]
    assert found.length_bytes[1] == 4 * 512  # space behind the end is another's


def hot_and_cold(writes: int = 300_000, live: int = 1 << 15) -> tuple[np.ndarray, Machine]:
    raw, _ = hot_and_cold_files(writes, 1, live)
    return telemetry(raw), Machine(int(live * 1.1), live, 3600.0)


def test_streams_are_predicted_to_save_where_hot_is_mixed_with_cold() -> None:
    records, machine = hot_and_cold()
    found = {model.name: predict(Recorded(records, records), machine, model) for model in MODELS}
    fdp, consumer = found["enterprise-fdp"], found["consumer-tlc"]
    written = int(records["pages"].sum()) * 4096
    assert written <= fdp.nand_oracle_bytes < fdp.nand_streams_bytes
    assert fdp.nand_streams_bytes < 0.97 * fdp.nand_off_bytes
    assert fdp.nand_off_bytes > fdp.nand_now_bytes  # streamfs's own log takes of the spare
    assert consumer.nand_streams_bytes >= 0.97 * consumer.nand_off_bytes  # it has one stream
    assert fdp.years_streams is not None
    assert fdp.years_now is not None
    gained = fdp.years_streams / fdp.years_now
    np.testing.assert_allclose(gained, fdp.nand_now_bytes / fdp.nand_streams_bytes, rtol=1e-6)


def test_what_is_a_log_is_not_written_by_streamfs() -> None:
    records, machine = hot_and_cold(60_000)
    data = records[: len(records) // 2]
    found = predict(Recorded(records, data), machine, MODELS[0])
    assert found.nand_off_bytes < 0.7 * found.nand_now_bytes


def test_a_model_of_another_size_has_blocks_in_proportion() -> None:
    model = MODELS[2]
    small = MODELS[0]
    assert fitted(small, small.capacity_bytes // 8192).block_pages == small.block_pages // 2
    fewer = fitted(model, 1 << 20)
    assert fewer.block_pages == (1 << 20) // 512
    assert round((1 << 20) * (1 + fewer.spare) / fewer.block_pages) == round(512 * 1.07) + 12
    assert fitted(model, 1 << 10).block_pages == 32


def requests(rows: list[tuple[int, int, bool, bool]]) -> Requests:
    """From offset, length, trim and log."""
    offset, length, trim, log = np.array(rows).T
    return Requests(trim != 0, offset, length, log != 0, 0 * offset, np.arange(len(rows)))


def test_a_page_of_a_file_is_one_page_wherever_another_file_system_put_it() -> None:
    # Blocks of 1 KiB: a piece of 4 KiB touches two pages of the device.
    found = requests(
        [
            (1024, 4096, False, False),
            (9216, 8192, False, False),  # two pages of a file
            (1024, 16384, True, False),  # both are gone
            (33 * 1024, 512, False, False),  # the end of a file
            (40960, 4096, False, True),
        ]
    )
    sent, files = found.as_sent(), found.as_files()
    assert sent["block"].tolist() == [0, 2, 0, 8, 10]
    assert sent["pages"].tolist() == [2, 3, 5, 1, 1]
    assert files["block"].tolist() == [0, 2, 0, 8]
    assert files["pages"].tolist() == [1, 2, 4, 1]
    assert found.log_runs().tolist() == [[10, 1]]


def test_pieces_that_do_not_overlap_are_different_pages() -> None:
    rng = np.random.default_rng(3)
    offset = np.cumsum(rng.integers(8, 12, 1000)) * 512  # 4 KiB and up to 1.5 KiB between
    none = np.zeros(1000, np.bool_)
    files = Requests(none, offset, np.full(1000, 4096), none, 0 * offset, 0 * offset).as_files()
    assert (files["pages"] == 1).all()
    assert len(np.unique(files["block"])) == 1000


def test_a_log_is_written_once_a_commit() -> None:
    kinds = [False, True, True, False, False, True, False]
    rows = [(4096 * i, 4096, False, log) for i, log in enumerate(kinds)]
    assert requests(rows).commits() == 2
    trimmed = [(offset, length, True, log) for offset, length, _, log in rows]
    assert requests(trimmed).commits() == 0


def test_where_a_log_lies_is_no_data() -> None:
    held = np.array([[0, 10], [20, 10], [40, 5]])
    runs = np.array([[22, 3], [24, 2], [8, 4], [44, 100]])
    assert without(held, runs).tolist() == [[0, 8], [20, 2], [26, 4], [40, 4]]
    assert without(held, runs[:0]).tolist() == held.tolist()
    assert without(held[:0], runs).tolist() == []


def test_what_a_file_system_holds_is_what_is_neither_free_nor_its_own() -> None:
    free, table, unknown = 1, (ord("f") << 32) | 2, 2
    rows = [[table, 0, 8192], [free, 16384, 4096], [unknown, 20480, 4096], [free, 30000, 10000]]
    told = np.array([*rows, [0, 40000, 9152]])  # in no row: 8192 to 16384, 24576 to 30000
    assert held(told).tolist() == [[2, 2], [5, 3], [9, 3]]


ROW = struct.Struct("<IIQQQQ24x")  # linux/fsmap.h
FREE = 1
Row = tuple[int, int, int, int, int]


def told_by(
    monkeypatch: pytest.MonkeyPatch, answers: Sequence[list[Row]], flags: int
) -> list[list[int]]:
    """Let space_map() read answers of rows: device, flags, first byte, owner, bytes."""
    asked: list[tuple[int, ...]] = []

    def ioctl(_: int, request: int, buffer: bytearray) -> None:
        assert request == 0xC0C0583B
        asked.append(ROW.unpack_from(buffer, 64))
        rows = answers[len(asked) - 1]
        struct.pack_into("<II", buffer, 4, flags, struct.unpack_from("<I", buffer, 8)[0])
        struct.pack_into("<I", buffer, 12, len(rows))
        for number, (device, of, first, owner, length) in enumerate(rows):
            ROW.pack_into(buffer, 64 + (2 + number) * 64, device, of, first, owner, 0, length)

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    found: list[list[int]] = spacemap.space_map(Path("/")).tolist()
    assert len(asked) == len(answers)
    # It goes on behind the last row that it was told.
    before = [rows[-1] for rows in answers[:-1]]
    assert asked == [(0,) * 6, *((d, f, at, owner, 0, n) for d, f, at, owner, n in before)]
    return found


def test_behind_the_last_row_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path("/").stat().st_dev
    first = [(own, 0x10, 0, FREE, 4096), (own, 0, 4096, 77, 8192)]
    last = [(own, 0x30, 12288, FREE, 4096)]
    rows = [[FREE, 0, 4096], [0, 4096, 8192], [FREE, 12288, 4096]]
    assert told_by(monkeypatch, [first, last], 1) == rows
    assert told_by(monkeypatch, [first, []], 1) == rows[:2]
    assert told_by(monkeypatch, [[]], 1) == []


def test_rows_of_another_device_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path("/").stat().st_dev
    for number, flags in ((own, 1), (1, 0)):  # by number, or counted
        answers = [
            [(number, 0x10, 0, FREE, 4096), (number + 1, 0, 8192, 77, 4096)],
            [(number + 1, 0x30, 0, FREE, 1 << 40)],
        ]
        assert told_by(monkeypatch, answers, flags) == [[FREE, 0, 4096]]
    lower = [(own - 1, 0, 0, 77, 4096), (own, 0x30, 0, FREE, 4096)]
    assert told_by(monkeypatch, [lower], 1) == [[FREE, 0, 4096]]


def test_what_was_held_lies_where_the_file_system_said() -> None:
    # Only the first pages are written to: held, they are overwritten; else there is more to hold.
    rng = np.random.default_rng(1)
    records = telemetry(make(rng.integers(0, 5_536, 100_000), np.ones(100_000)))
    places = [np.array([[0, 60_000]]), np.array([[5_536, 60_000]])]
    machines = [Machine(65_536, 60_000, 0.0, held) for held in (None, *places)]
    front, same, behind = (
        predict(Recorded(records, records), each, MODELS[2]) for each in machines
    )
    assert front == same
    assert behind.nand_now_bytes > 1.05 * same.nand_now_bytes
    # Where the other file system's log lay, streamfs has nothing.
    log = Log(np.array([[40_000, 20_000]]), 1000)
    freed = predict(Recorded(records, records, log), machines[1], MODELS[2])
    assert freed.nand_now_bytes == same.nand_now_bytes
    assert freed.nand_off_bytes < same.nand_off_bytes


def contested(
    monkeypatch: pytest.MonkeyPatch, first: int, used: int, written: int
) -> tuple[list[int], int]:
    """Pages that each candidate copied on shadow devices of 64 Ki pages, and the writes refused.

    `used` pages are held from `first` on, and 300,000 of the last `written` of these overwritten.
    """
    kept: list[Contest] = []

    class Kept(Contest):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            kept.append(self)

    monkeypatch.setattr(advise, "Contest", Kept)
    rng = np.random.default_rng(2)
    blocks = first + used - written + rng.integers(0, written, 300_000)
    records = telemetry(make(blocks, np.ones(len(blocks))))
    predict(
        Recorded(records, records), Machine(65_536, used, 0.0, np.array([[first, used]])), MODELS[2]
    )
    shadow = kept[0]._choice._shadow
    return shadow.copied, shadow.refused


def test_what_is_learned_does_not_depend_on_where_the_data_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = contested(monkeypatch, 0, 57_344, 8_192)
    behind = contested(monkeypatch, 8_192, 57_344, 8_192)
    logistic = [name.startswith("logistic") for name in CANDIDATES]
    for knows_places, here, there in zip(logistic, front[0], behind[0], strict=True):
        # A logistic model knows places, so its hashes differ; a table knows none.
        assert there == pytest.approx(here, rel=0.02 if knows_places else 0)
    assert front[1] == behind[1] == 0
    assert min(front[0]) > 0


def test_a_device_that_is_nearly_empty_copies_next_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The contest judges as on a full one; what is predicted is of the device as it is."""
    copied, refused = contested(monkeypatch, 0, 4_096, 4_096)
    assert refused == 0
    assert max(copied) > 100_000
    written = telemetry(
        make(np.random.default_rng(2).integers(0, 4_096, 300_000), np.ones(300_000))
    )
    held = Machine(65_536, 4_096, 0.0, np.array([[0, 4_096]]))
    found = predict(Recorded(written, written), held, MODELS[2])
    for nand in (found.nand_now_bytes, found.nand_off_bytes, found.nand_streams_bytes):
        assert nand < 1.02 * 300_000 * 4096


def test_records_are_split_where_their_stream_changes() -> None:
    records = telemetry(make([0, 100, 0], [4, 2, 4], trim=[False, False, True]))
    out = tagged(records, np.array([1, 1, 2, 2, 3, 3], np.uint8))
    assert out["block"].tolist() == [0, 2, 100, 0]
    assert out["pages"].tolist() == [2, 2, 2, 4]
    assert out["pstream"].tolist()[:3] == [1, 2, 3]
    assert out["request_offset"].tolist()[:3] == [0, 2, 0]


def test_the_models_are_those_of_ssd_sim(tmp_path: Path) -> None:
    program = Path(os.environ.get("STREAMFS_BIN", "/nowhere")) / "ssd-sim"
    if not program.exists():
        pytest.skip("STREAMFS_BIN says no ssd-sim")
    for model in MODELS:
        image = tmp_path / model.name
        scale = ["--scale", "1/64"]
        subprocess.run([program, "create", image, "--preset", model.name, *scale], check=True,
                       capture_output=True)  # fmt: skip
        said = subprocess.run([program, "info", image, "--json"], check=True, capture_output=True)
        image.unlink()
        told = json.loads(said.stdout)
        assert told["stream_count"] == model.pstreams
        assert told["gc_mode"] == model.gc_mode
        assert told["pages_per_block"] * 64 == model.block_pages
        here = fitted(model, told["user_bytes"] // 4096)
        if here.block_pages == told["pages_per_block"]:
            blocks = told["user_bytes"] // 4096 * (1 + here.spare) / here.block_pages
            assert abs(told["blocks"] - blocks) <= 1
        assert abs(told["user_bytes"] * 64 - model.capacity_bytes) < 1 << 20


def test_a_trace_is_read_back_as_it_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = blocktrace.collect(LINES.splitlines(), 0, 1 << 30)
    path = tmp_path / "trace.csv"
    with path.open("w") as file:
        recording.write(file, made)
    read = recording.read(path)
    assert read is not None
    assert read.requests.log.tolist() == [True, False, False, True, True]
    assert read.requests.trim.tolist() == [False, False, True, False, False]
    assert read.requests.offset_bytes[:2].tolist() == [4096 * 512, 2048 * 512]
    assert read.seconds == 1.8999
    assert main(["advise", str(path), "--capacity", "64M", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["capacity_bytes"] == 64 << 20
    assert {each["model"] for each in told["models"]} == {model.name for model in MODELS}
    assert main(["advise", str(path), "--model", "consumer-tlc"]) == 0
    text = capsys.readouterr().out
    assert "consumer-tlc" in text
    assert "persistently isolated" in text


def test_times_that_go_back_do_not_stop_time() -> None:
    none = np.zeros(4, np.int64)
    when = np.array([5000, 1000, 9000, 1 << 60])
    asked = Requests(none != 0, none, none + 4096, none != 0, none, when)
    assert asked.as_files()["time_ms"].tolist() == [0, 0, 4, 2**32 - 1]


@pytest.mark.parametrize("number", ["-5", "70000", "1000000000000"])
def test_a_vstream_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"op,offset_bytes,length_bytes,vstream\nW,0,4096,{number}\n")
    assert main(["advise", str(path), "--capacity", "1G"]) == EXIT_NO_DEVICE


@pytest.mark.parametrize("rows", ["#device,80000000000000000,0\n1,W,0,4096,0\n", "1,W,0,4096,0\n"])
def test_an_ssd_of_a_size_that_none_has_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"{recording.HEADER}\n{rows}")
    assert main(["advise", str(path)]) == EXIT_USAGE
    assert "nothing can be said" in caplog.text


def test_what_cannot_be_advised_on_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text(recording.HEADER + "\n")
    assert main(["advise", str(empty)]) == EXIT_USAGE
    assert "nothing was written" in caplog.text
    assert main(["advise", str(tmp_path / "none")]) == EXIT_NO_DEVICE
    (tmp_path / "noise").write_bytes(b"\xff\x00noise")
    assert main(["advise", str(tmp_path / "noise")]) == EXIT_NO_DEVICE
    some = tmp_path / "some.csv"
    some.write_text(recording.HEADER + "\n1,W,1048576,4096,0\n")
    assert main(["advise", str(some), "--capacity", "64K"]) == EXIT_USAGE
    for wrong in (["--seconds", "-1"], ["--capacity", "much"], ["--model", "best"]):
        with pytest.raises(SystemExit) as ended:
            main(["advise", str(some), *wrong])
        assert ended.value.code == EXIT_USAGE
