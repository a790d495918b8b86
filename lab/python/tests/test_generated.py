"""The simulator's workloads as records, and the device's modes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from classifierd.command_line import EXIT_USAGE
from classifierd.records import KIND_TRIM, from_bytes
from streamfs_lab import _lab
from streamfs_lab.cli import main
from streamfs_lab.replay import Device, waf_of, workload_of

PAGES = 1 << 15


@pytest.mark.parametrize("name", _lab.generator_names())
def test_a_generated_workload_writes_what_it_says(name: str) -> None:
    data, _ = _lab.generated(name, PAGES, 4 * PAGES, 7)
    records = from_bytes(data)
    writes = records[records["kind"] != KIND_TRIM]
    assert int(writes["pages"].sum()) == 4 * PAGES
    inside = writes["request_offset"] + writes["pages"] <= writes["request_pages"]
    assert inside[:-1].all()  # the last request may be cut short
    again, _ = _lab.generated(name, PAGES, 4 * PAGES, 7)
    assert (again == data).all()


def test_requests_stay_whole() -> None:
    data, starts_full = _lab.generated("fio4", PAGES, 4 * PAGES, 1)
    records = from_bytes(data)
    assert starts_full
    assert set(records["request_pages"].tolist()) == {32}  # 128 KiB, its source says
    assert (records["pages"][:-1] == 32).all()
    assert set(records["vstream"].tolist()) == {0, 1, 2, 3}


def test_a_workload_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="fio4"):
        _lab.generated("fio5", PAGES, PAGES)
    with pytest.raises(ValueError, match="at least"):
        _lab.generated("fio4", 1, PAGES)


def test_where_copies_go_is_the_devices_affair() -> None:
    data, _ = _lab.generated("hotcold", PAGES, 12 * PAGES, 1)
    records = from_bytes(data)
    workload = workload_of(records, [], 2)
    mixed = np.zeros(12 * PAGES, np.uint8)
    waf = {gc: waf_of(workload, "", Device(gc_mode=gc), mixed) for gc in ("same", "own", "shared")}
    assert waf["own"] == waf["shared"] < waf["same"]  # of one stream
    with pytest.raises(ValueError, match="same, own, shared"):
        waf_of(workload, "", Device(gc_mode="none"), mixed)


def test_a_replay_without_hints_sees_one_vstream(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["replay", "hotcold", "--pages", "300000", "--live", "32768", "--json"]
    words += ["--policies", "life-table"]
    figures = []
    for more in ([], ["--no-hints"]):
        assert main([*words, *more]) == 0
        figures.append(json.loads(capsys.readouterr().out)["policies"]["life-table"]["waf"])
    labelled, unlabelled = figures
    assert labelled < unlabelled
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--gc", "none"])
    assert stopped.value.code == EXIT_USAGE


def test_a_replay_has_the_blocks_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["replay", "hotcold", "--pages", "200000", "--live", "16384", "--json"]
    words += ["--policies", "nosep", "--block-pages"]
    figures = []
    for pages in ("64", "1024"):
        assert main([*words, pages]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["block_pages"] == int(pages)
        figures.append(said["policies"]["nosep"]["waf"])
    assert figures[0] != figures[1]
    assert main([*words, "1025"]) == EXIT_USAGE
