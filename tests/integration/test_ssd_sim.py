"""The emulated SSD as an image: making it, its statistics; replaying a trace."""

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.integration.simulated import (
    FOREIGN,
    MIB,
    NO_DEVICE,
    NOT_EMPTY,
    SSD_SIM,
    USAGE,
    info,
    must,
    ssd_sim,
)

# Images


def test_info_shows_a_new_ssd(image: Path) -> None:
    shown = info(image)
    assert shown["user_bytes"] == 512 * MIB
    assert shown["physical_bytes"] >= 512 * MIB * 1.1
    assert shown["waf"] is None
    assert shown["written_bytes"] == shown["nand_bytes"] == shown["erases"] == 0
    assert len(shown["streams"]) == shown["stream_count"] == 4
    assert set(shown["latency_us"]) == {"p50", "p99", "p999"}
    assert "512.00 MiB" in must(SSD_SIM, "info", image)


def test_create_replaces_only_when_told_to(image: Path) -> None:
    uuid = info(image)["uuid"]
    refused = ssd_sim("create", image, "--size", "1G")
    assert refused.status == NOT_EMPTY
    assert "--force" in refused.err
    assert info(image)["uuid"] == uuid
    must(SSD_SIM, "create", image, "--size", "1G", "--force")
    assert info(image)["uuid"] != uuid


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "1G", "--op", "0"],
        ["--size", "1G", "--op", "-0.5"],
        ["--size", "1G", "--streams", "0"],
        ["--size", "1G", "--streams", "1000"],
        ["--size", "4M", "--streams", "64"],
        ["--size", "1G", "--pages-per-block", "7"],
        ["--size", "1G", "--ftl", "emmc", "--streams", "8"],
        ["--size", "1G", "--ftl", "emmc", "--plp"],
        ["--size", "1G", "--ftl", "hybrid", "--streams", "2"],
        ["--size", "1G", "--ftl", "hybrid", "--no-plp"],
        ["--size", "1G", "--ftl", "log-block", "--victim", "cost-benefit"],
        ["--size", "1G", "--ftl", "log-block", "--map-unit", "8k"],
        ["--size", "1G", "--ftl", "vstreams"],
        ["--size", "0"],
        ["--size", "100000T"],
        ["--size", "large"],
        [],
    ],
)
def test_an_impossible_ssd_is_an_error_and_leaves_nothing(
    tmp_path: Path, options: list[str]
) -> None:
    done = ssd_sim("create", tmp_path / "ssd", *options)
    assert done.status == USAGE
    assert done.err.strip()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "victim"),
    [
        (("--size", "64M"), "cost-benefit"),
        (("--size", "64M", "--victim", "greedy"), "greedy"),
        (("--size", "64M", "--streams", "1"), "greedy"),
        (("--size", "64M", "--gc", "same"), "greedy"),
        (("--size", "64M", "--gc", "shared"), "greedy"),
        (("--size", "64M", "--gc", "shared", "--victim", "cost-benefit"), "cost-benefit"),
        (("--preset", "vstream-256g", "--scale", "1/256"), "greedy"),
    ],
)
def test_victims_are_by_cost_benefit_where_streams_have_copies_of_their_own(
    tmp_path: Path, options: tuple[str, ...], victim: str
) -> None:
    must(SSD_SIM, "create", tmp_path / "ssd", *options)
    assert json.loads(must(SSD_SIM, "info", tmp_path / "ssd", "--json"))["victim"] == victim


def test_what_is_not_an_image_is_refused(tmp_path: Path, image: Path) -> None:
    assert ssd_sim("info", tmp_path / "none").status == NO_DEVICE
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"hello" * 10000)
    assert ssd_sim("info", foreign).status == FOREIGN
    os.truncate(image, 100_000)
    done = ssd_sim("info", image)
    assert done.status == FOREIGN
    assert "truncated" in done.err


def test_the_command_line_is_for_people() -> None:
    assert must(SSD_SIM, "--version").startswith("streamfs ")
    for command in ("create", "replay", "bench", "compare"):
        shown = must(SSD_SIM, command, "--help")
        assert "->" not in shown
        assert "--gc MODE" in shown


# Traces


def write_logs(path: Path) -> None:
    """Make a trace of four logs, overwritten at different speeds, with the right tags."""
    random.seed(1)
    cursor = [0] * 4
    with gzip.open(path, "wt") as file:
        file.write("ts_us,op,offset_bytes,length_bytes,vstream,context,request,pstream\n")
        for i in range(150_000):
            log = random.choices(range(4), [70, 20, 8, 2])[0]
            offset = (log * 4096 + cursor[log] % 4096) * 4096
            cursor[log] += 1
            file.write(f"{i},W,{offset},4096,{log},prog{log},{i},{log}\n")


def replay(trace: Path, *options: str) -> dict[str, Any]:
    """Replay a trace; what came of it."""
    shown: dict[str, Any] = json.loads(
        must(SSD_SIM, "replay", trace, "--json", "--warmup", "0.3", *options)
    )
    return shown


def test_replay_tells_what_separation_is_worth(tmp_path: Path) -> None:
    trace = tmp_path / "logs.csv.gz"
    write_logs(trace)
    small = ["--pages-per-block", "64"]
    wafs = {name: replay(trace, "--placement", name, *small) for name in ("nosep", "sepgc", "tags")}
    assert wafs["tags"]["waf"] < 1.05 < 1.1 < wafs["sepgc"]["waf"] < wafs["nosep"]["waf"]
    assert wafs["tags"]["host_pages"] == 105_000
    best = replay(trace, "--placement", "oracle", "--edges", "best", *small)
    assert best["waf"] == min(
        replay(trace, "--placement", "oracle", "--edges", edges, *small)["waf"]
        for edges in ("log2", "quantile", "threshold")
    )


def test_replay_takes_the_flash_of_a_given_device(tmp_path: Path) -> None:
    trace = tmp_path / "logs.csv.gz"
    write_logs(trace)
    shown = replay(trace, "--physical-pages", str(64 * 300), "--pages-per-block", "64")
    assert shown["physical_pages"] == 64 * 300
    assert shown["effective_spare"] == pytest.approx(64 * 300 / shown["peak_live_pages"] - 1)


def test_replay_names_what_is_wrong(tmp_path: Path) -> None:
    trace = tmp_path / "bad.csv"
    trace.write_text("ts_us,op,offset_bytes,length_bytes\n1,W,0,4096\n2,W,0,zebra\n")
    done = ssd_sim("replay", trace)
    assert done.status == FOREIGN
    assert "line 3" in done.err
    assert "zebra" in done.err
    trace.write_text("1,W,0,4096\n")
    done = ssd_sim("replay", trace, "--placement", "magic")
    assert done.status == USAGE
    assert "sepbit" in done.err
    assert ssd_sim("replay", trace, "--size", "lots").status == USAGE
