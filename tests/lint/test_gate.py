"""Stages of scripts/test: which of them run, and what the closing line claims."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STAGES = """
set -euo pipefail
. "$ROOT/scripts/lib.sh"; . "$ROOT/scripts/gate.sh"
fails() { return 1; }
skips() { skip "no root"; }
repeats() { second_attempt test_of_time; }
slow() { sleep 1.1; }
job() { echo "from the job"; }
stages() {
  stage gate,long,quick lint "lint of all" 10 true
  stage gate,long unit "unit tests" 10 true
  stage long soak "a soak" 10 true
}
"""


def run(script: str, *, code: int = 0) -> str:
    done = subprocess.run(
        ["bash", "-c", STAGES + script],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "ROOT": str(ROOT)},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def closing_line(script: str, *, code: int = 0) -> str:
    return run(f"begin_run; {script}; finish", code=code).splitlines()[-1]


def test_the_whole_gate_passed() -> None:
    printed = run("begin_run; stages; finish")
    assert "=== lint of all" in printed
    assert "=== unit tests" in printed
    assert "soak" not in printed
    assert printed.endswith("All passed.\n")


@pytest.mark.parametrize("choice", ["GROUP=quick", "ONLY=(lint)"])
def test_a_part_of_the_gate_is_not_called_all(choice: str) -> None:
    assert closing_line(f"{choice}; stages") == ("Passed: not the whole gate.")


def test_a_stage_of_another_group_can_be_named() -> None:
    assert "=== a soak" in run("ONLY=(soak); know_stages; begin_run; stages; finish")


def test_what_was_skipped_or_repeated_is_counted() -> None:
    script = "stages; run_stage a 10 skips; run_stage b 10 skips; run_stage c 10 repeats"
    assert closing_line(script) == "Passed: 2 skipped; 1 only at a second attempt."


def test_a_failure_is_named_and_the_others_run() -> None:
    printed = run("begin_run; run_stage first 10 fails; stages; finish", code=1)
    assert "=== unit tests" in printed
    assert printed.endswith("failed: first; \n")


def test_a_required_stage_that_fails_ends_the_run() -> None:
    assert "=== lint" not in run("begin_run; required first 10 fails; stages; finish", code=1)


def test_a_stage_over_its_budget_does_not_fail() -> None:
    printed = run("begin_run; run_stage long 0 slow; finish")
    assert "over its budget of 0 s" in printed


def test_an_unknown_stage_runs_nothing() -> None:
    printed = run("ONLY=(typo); know_stages; begin_run; stages; finish", code=2)
    assert "no stage is called typo; --list prints their names" in printed
    assert "===" not in printed


@pytest.mark.parametrize("begin", ["", "begin_behind job; "])
def test_a_job_is_joined_whether_or_not_it_runs_behind(begin: str) -> None:
    assert "from the job" in run(f"begin_run; {begin}run_stage a 10 join_behind job; finish")


def test_a_run_that_ends_removes_its_directory() -> None:
    assert run('begin_run; echo "$TMPDIR"; [[ -d $TMPDIR ]] && stages >/dev/null').strip()
    folder = Path(run('begin_run; echo "$TMPDIR"').strip())
    assert folder.name.startswith("streamfs-test.")
    assert not folder.exists()
