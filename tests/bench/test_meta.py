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
    assert named["create: ÷ limit_fs"].value == pytest.approx(0.8)
    assert named["create: ÷ limit_fs"].unit == "0.10 to 0.90"
    assert named["create: ÷ limit_fs"].met is False
    assert "META class synced" in named["create: streamfs"].unit
    assert not any("passthrough" in name for name in named)


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
