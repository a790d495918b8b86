"""Metadata on mounts: ratios are of the same round, and the mounts measured are real ones."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from bench import mounts
from bench.suites import meta
from bench.system import BenchError


def found(speed: float, server_us: float = 1.0) -> meta.Found:
    return {"create": {"per_second": speed, "server_us": server_us}}


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    rounds = [
        {"streamfs": found(ours), "limit_fs": found(limit)}
        for ours, limit in ((80, 100), (900, 1000), (1, 10))
    ]
    named = {one.name: one for one in meta.rows(rounds, "META class synced")}
    assert named["create: streamfs ÷ limit_fs"].value == pytest.approx(0.8)
    assert named["create: streamfs ÷ limit_fs"].unit == "0.10 to 0.90"
    assert named["create: streamfs ÷ limit_fs"].met is False
    assert "META class synced" in named["create: streamfs"].unit
    assert not any("passthrough" in name for name in named)


def test_over_io_uring_the_limit_is_that_of_io_uring() -> None:
    once = {
        "streamfs": found(80),
        "limit_fs": found(100),
        "streamfs over io_uring": found(190),
        "limit_fs over io_uring": found(200),
    }
    named = {one.name: one for one in meta.rows([once], "META class synced")}
    over = "create: streamfs over io_uring ÷ "
    assert named[over + "limit_fs over io_uring"].value == pytest.approx(0.95)
    assert named[over + "limit_fs over io_uring"].met
    assert named[over + "streamfs"].value == pytest.approx(190 / 80)
    assert over + "limit_fs" not in named
    assert "create: streamfs ÷ limit_fs over io_uring" not in named


@pytest.mark.parametrize(
    ("operation", "least"),
    [("create", 1.3), ("create" + meta.BOUND, 2.0), ("rmdir", 1.0), ("rmdir" + meta.BOUND, 1.0)],
)
def test_io_uring_is_held_against_the_device(operation: str, least: float) -> None:
    for speed, met in ((least * 99, False), (least * 101, True)):
        once = {
            name: {operation: {"per_second": rate, "server_us": 1.0}}
            for name, rate in (
                ("streamfs", 100),
                ("limit_fs", 1),
                ("streamfs over io_uring", speed),
            )
        }
        once["limit_fs over io_uring"] = once["limit_fs"]
        named = {one.name: one for one in meta.rows([once], "")}
        assert named[f"{operation}: streamfs over io_uring ÷ streamfs"].met is met


def test_a_copy_of_small_files_is_held_against_ext4() -> None:
    rounds = [{"streamfs": 1.7, "streamfs over io_uring": 1.9, "ext4": 1.0}]
    named = {one.name: one for one in meta.copy_rows(rounds)}
    assert named["cp -a of small files: streamfs ÷ ext4"].met
    assert named["cp -a of small files: streamfs over io_uring ÷ ext4"].met is False
    assert named["cp -a of small files: ext4"].value == pytest.approx(1.0)


def test_io_uring_is_measured_where_the_kernel_offers_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    enabled = tmp_path / "enable_uring"
    monkeypatch.setattr(mounts, "ENABLED", enabled)
    assert not mounts.over_io_uring(mounts.limit_fs)
    enabled.write_text("N\n")
    assert not mounts.over_io_uring(mounts.limit_fs)
    enabled.write_text("Y\n")
    assert list(mounts.over_io_uring(mounts.limit_fs)) == ["limit_fs over io_uring"]


def test_without_loop_devices_the_one_row_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meta, "why_not", lambda _: "root is needed")
    [only] = meta.measure(quick=True)
    assert only.value is None
    assert only.unit == "root is needed"


def test_a_server_that_was_not_built_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mounts, "PASSTHROUGH", tmp_path / "none")
    with ExitStack() as stack, pytest.raises(BenchError, match="was not built"):
        mounts.passthrough_hp(stack, tmp_path, 1 << 30)
