"""bench/apps: what counts, what it is held against, and one small run of real programs."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from bench.applications.figures import (
    FROM_NOSEP,
    FROM_SEPGC,
    NAND,
    THROUGHPUT,
    Cell,
    Run,
    missed,
    rows_of,
)
from bench.applications.report import draw, print_cell
from bench.applications.rows import QUICK_ROWS, ROWS, WAYS
from bench.emulated.folders import fresh_folders
from bench.emulated.replays import replay
from bench.emulated.run import Job, Outcome, run
from bench.programs.plan import FULL, MIB, QUICK, SqlitePlan, to_plan
from bench.programs.runner import ROCKS, SQLITES
from bench.suites import apps
from bench.system import BenchError
from bench.table import Row
from rich.console import Console
from tests.bench.made import GIB, REPLAYS, outcome


def cell(name: str, *, plp: bool = True, **nand_gib: float) -> Cell:
    """A cell with one seed, run in these ways."""
    runs = {way: [Run(1, outcome(way, value))] for way, value in nand_gib.items()}
    return Cell(ROWS[name], plp, runs=runs, replays={1: REPLAYS})


def value_of(rows: list[Row], name: str) -> Row:
    """Find the one row whose name ends so."""
    [found] = [one for one in rows if one.name.endswith(name)]
    return found


def test_a_void_run_counts_in_no_figure_and_is_shown() -> None:
    both = cell("mixed", both=1.2)
    both.runs["both"].append(Run(2, outcome("both", 9.0, spare=0.076)))
    assert both.mean("both", NAND) == pytest.approx(1.2)
    assert both.voids("both") == 1
    assert value_of(list(rows_of(both)), "both: void runs").value == 1


def test_persistent_meta_has_a_target_without_protection_only() -> None:
    for plp, meta, met in (
        (False, "persistent", False),
        (False, "synced", None),
        (True, "trusted", None),
    ):
        one = replace(cell("mixed", plp=plp, learned=1.4), meta=meta)
        assert value_of(list(rows_of(one)), f"learned: {NAND.title}").met is met


def test_the_gap_is_counted_from_nosep_and_from_sepgc_of_the_seeds_own_replay() -> None:
    mixed = cell("mixed", both=1.2)
    assert mixed.mean("both", FROM_NOSEP) == pytest.approx(0.8)
    assert mixed.mean("both", FROM_SEPGC) == pytest.approx(0.6)
    mixed.runs["both"].append(Run(2, outcome("both", 1.9)))
    assert mixed.values("both", FROM_NOSEP) == pytest.approx([0.8]), "no replay of seed 2"


def test_without_power_loss_protection_there_is_no_gap_as_replays_do_not_pad() -> None:
    assert cell("mixed", plp=False, both=1.2).mean("both", FROM_NOSEP) is None


def test_other_filesystems_close_no_gap_of_streamfs_traces() -> None:
    assert cell("mixed", xfs=1.2).mean("xfs", FROM_NOSEP) is None


def test_what_writes_more_than_ext4_or_xfs_is_missed_and_what_writes_less_is_not() -> None:
    rows = list(rows_of(cell("mixed", ext4=1.5, xfs=1.3, learned=1.4, both=1.1)))
    names = {one.name.split(", ", 2)[-1] for one in missed(rows)}
    assert "learned: NAND per application byte ÷ xfs's" in names
    assert "learned: gap closed from nosep" in names, ".6 of .8"
    assert not any("both" in name or "ext4" in name for name in names)


def test_only_the_mixed_row_has_a_gap_to_close() -> None:
    assert not missed(list(rows_of(cell("sqlite-wal", ext4=9.0, xfs=9.0, both=1.9))))


def test_rocksdb_stands_beside_the_source_and_says_when_its_gain_cannot_be_had() -> None:
    rows = list(rows_of(cell("rocksdb-overwrite", off=1.5, hints=1.2)))
    assert value_of(rows, "hints: lifetime gained").value == pytest.approx(0.25)
    assert "too low" in value_of(rows, "streams-off WAF without padding").unit
    high = list(rows_of(cell("rocksdb-overwrite", off=1.6, hints=1.2)))
    assert "can be had" in value_of(high, "streams-off WAF without padding").unit
    assert not [one for one in rows_of(cell("mixed", off=1.5, both=1.2)) if "gained" in one.name]


def test_throughput_is_of_application_bytes_on_the_saturated_clock() -> None:
    fast = cell("mixed", both=1.2)
    assert fast.mean("both", THROUGHPUT) == pytest.approx(GIB / 1e6 / 10)


def test_what_is_shown_names_the_spread_and_the_picture_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = cell("mixed", ext4=1.5, both=1.2)
    two.runs["both"].append(Run(2, outcome("both", 1.4)))
    print_cell(Console(width=200), two)
    assert "1.200-1.400" in capsys.readouterr().out
    assert value_of(list(rows_of(two)), f"both: {NAND.title}").unit == "1.2 to 1.4, 2 seeds"
    draw(tmp_path / "apps.png", [two])
    assert (tmp_path / "apps.png").stat().st_size > 1000


def test_a_plan_goes_to_the_workloads_process_and_comes_back() -> None:
    for plan in (QUICK, FULL, *(row.plan for row in ROWS.values())):
        assert to_plan(json.loads(json.dumps(asdict(plan)))) == plan


def test_every_row_names_programs_that_there_are() -> None:
    known = {each.name for each in (*SQLITES, *ROCKS)} | {"postgres", "logs", "media", "trees"}
    assert all(set(row.programs) <= known for row in ROWS.values())
    assert set(QUICK_ROWS) <= set(ROWS)


def test_an_unknown_row_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        apps.parse(["--rows", "mixed,oracle-db"])
    assert ended.value.code == 2
    assert "oracle-db: known are sqlite-rollback" in capsys.readouterr().err


def test_a_run_that_is_void_is_done_again_and_then_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def void(job: Job, *_: object) -> Outcome:
        done.append(job.seed)
        return outcome(job.mode, 1.0, spare=0.2)

    monkeypatch.setattr(apps, "run", void)
    kept = apps.measured(Cell(ROWS["mixed"], plp=True), "both", 3, lambda _: None)
    assert kept is not None
    assert kept.void
    assert done == [3] * apps.TRIES


def test_a_run_that_fails_is_tried_again_and_costs_no_other_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []

    def full(job: Job, *_: object) -> Outcome:
        if job.mode == "ext4":
            message = "db_bench failed with 1"
            raise BenchError(message)
        return outcome(job.mode, 1.2)

    monkeypatch.setattr(apps, "run", full)
    options = apps.parse(
        ["--rows", "mixed", "--ways", "ext4,both", "--seeds", "1", "--plp", "with"]
    )
    [found] = apps.cells(options, said.append)
    assert found.failed == {"ext4": 1}
    assert found.mean("both", NAND) == pytest.approx(1.2)
    assert sum("failed: db_bench failed with 1" in line for line in said) == apps.TRIES
    assert value_of(list(rows_of(found)), "ext4: failed runs").value == 1


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="there is no /dev/fuse")
def test_sqlite_on_a_small_device_without_protection_pads_and_is_replayed(tmp_path: Path) -> None:
    small = SqlitePlan(rows=4_000, commits=40, rows_a_commit=4, sorted_rows=500)
    plan = replace(
        QUICK,
        live_bytes=96 * MIB,
        pages_per_block=16,
        warmup_rounds=1,
        counted_rounds=1,
        sqlite=small,
        name="tiny",
    )
    job = Job("off", WAYS["off"], plan, ("sqlite-rollback",), 1, plp=False)
    with fresh_folders(tmp_path, plan, keep=False) as folders:
        if os.geteuid() == 0:
            tmp_path.chmod(0o755)
        found = run(job, folders, lambda _: None)
        assert found.trace is not None
        assert replay(found, found.trace, plan).oracle_waf >= 1
    assert found.app_bytes > 0
    assert found.counters.pad_bytes > 0
    assert found.counters.erases > 0
    assert found.counters.saturated_seconds > 0
    assert not list(tmp_path.iterdir()), "nothing is left behind"
