"""Filesystems on a loop device: a machine that has none gets a reason, a broken one no figure."""

import json
from pathlib import Path

import pytest
from bench import filesystems, loop, table
from bench.accounting import asked_by
from bench.system import BenchError
from rich.console import Console


def test_without_loop_devices_each_filesystem_has_a_row_that_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(filesystems, "why_not", lambda _: "root is needed")
    rows = filesystems.filesystems(quick=True)
    assert [one.value for one in rows] == [None, None]
    assert all("root is needed" in one.unit for one in rows)
    table.print_rows(Console(width=120), "waf", rows)
    assert "not measured" in capsys.readouterr().out
    assert json.loads(json.dumps(table.to_json("waf", rows)))["rows"][0]["value"] is None


def test_a_missing_program_is_named() -> None:
    reason = loop.why_not(["no-such-program"])
    assert reason is not None
    assert "no-such-program" in reason


def test_what_fails_ends_the_bench_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unclean(_: bool) -> list[table.Row]:
        message = "xfs_repair: exit 1"
        raise BenchError(message)

    monkeypatch.setattr("sys.argv", ["waf", "--quick"])
    assert table.main("waf", "", unclean) == 1
    assert "xfs_repair: exit 1" in capsys.readouterr().err


def test_what_a_command_asks_is_what_it_writes(tmp_path: Path) -> None:
    copy = ["dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=1M", "count=8", "status=none"]
    assert 8 << 20 <= asked_by(copy) < (8 << 20) + 65536
