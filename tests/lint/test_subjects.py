"""Commit messages: which break the rules, which commits are checked, and who gets the hook."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from subjects import history_errors, main, message_errors

ROOT = Path(__file__).resolve().parents[2]
RULES = ".ci/subjects.py"


@pytest.mark.parametrize(
    "message",
    [
        "Replay the log before the first write\n\nA cut left it behind.\n",
        "Process requests in order",
        "Feed the watchdog",
        "String views together",
        "X" * 72,
        "Merge branch 'model'",
        'Revert "contest: its lines are short again"',
        "fixup! the log",
        "Add it\n\nb\n# ------------------------ >8 ------------------------\n" + "x" * 200,
        "# a comment of git's\nAdd it\n",
    ],
)
def test_a_good_message_passes(message: str) -> None:
    assert list(message_errors(message)) == []


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("X" * 73, "subject of 73 characters"),
        ("The log is replayed", 'opens with "The"'),
        ("What the log holds", 'opens with "What"'),
        ("Flushed before the fence", 'opens with "Flushed"'),
        ("Flushing before the fence", 'opens with "Flushing"'),
        ("Docs: one table", 'opens with "Docs"'),
        ("add a test", "does not begin with a capital"),
        ("Add a test\nof the log", "no blank line"),
    ],
)
def test_each_rule_is_noticed(message: str, error: str) -> None:
    (found,) = message_errors(message)
    assert error in found


def test_the_program_says_why_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good").write_text("Add a test\n")
    (tmp_path / "bad").write_text("The test\n")
    assert main([str(tmp_path / "good")]) == 0
    assert main([str(tmp_path / "bad")]) == 1
    assert 'commit-msg: subject opens with "The"' in capsys.readouterr().err


def git(root: Path, *arguments: str, code: int = 0) -> None:
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    done = subprocess.run(
        ["git", "-C", str(root), *who, *arguments],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr


def commit(root: Path, subject: str, code: int = 0) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", subject, code=code)


def repository(root: Path) -> Path:
    git(root, "init", "-q")
    (root / ".ci").mkdir()
    (root / "scripts").mkdir()
    return root


def test_only_commits_after_the_rules_are_checked(tmp_path: Path) -> None:
    repository(tmp_path)
    commit(tmp_path, "what was before")
    assert list(history_errors(tmp_path)) == []
    (tmp_path / RULES).write_text("")
    commit(tmp_path, "the rules")
    assert list(history_errors(tmp_path)) == []
    commit(tmp_path, "Add a test")
    commit(tmp_path, "The log is replayed")
    (error,) = history_errors(tmp_path)
    assert error.startswith("commit ")
    assert 'opens with "The"' in error


def test_a_tree_without_git_has_no_commits_to_check(tmp_path: Path) -> None:
    assert list(history_errors(tmp_path)) == []


def install(root: Path) -> None:
    script = f". {ROOT}/scripts/lib.sh; ROOT={root}; . {ROOT}/scripts/hook.sh; install_commit_hook"
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["bash", "-euc", script], check=True, env=environment, timeout=60)


def test_the_hook_refuses_a_bad_subject(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / RULES).write_text((ROOT / RULES).read_text())
    install(tmp_path)
    install(tmp_path)
    commit(tmp_path, "The log is replayed", code=1)
    commit(tmp_path, "Replay the log")


def test_a_repository_without_a_folder_of_hooks_gets_one(tmp_path: Path) -> None:
    shutil.rmtree(repository(tmp_path) / ".git/hooks", ignore_errors=True)
    install(tmp_path)
    assert os.access(tmp_path / ".git/hooks/commit-msg", os.X_OK)


def test_a_commit_without_the_rules_is_not_checked(tmp_path: Path) -> None:
    install(repository(tmp_path))
    commit(tmp_path, "The log is replayed")


def test_the_hook_of_somebody_else_stays(tmp_path: Path) -> None:
    hook = repository(tmp_path) / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\nexit 0\n")
    install(tmp_path)
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"


def test_a_folder_of_hooks_of_somebody_else_stays_empty(tmp_path: Path) -> None:
    git(repository(tmp_path), "config", "core.hooksPath", str(tmp_path / "hooks"))
    install(tmp_path)
    assert not (tmp_path / "hooks").exists()
    assert not (tmp_path / ".git/hooks/commit-msg").exists()


def test_setting_up_a_tree_without_git_installs_nothing(tmp_path: Path) -> None:
    install(tmp_path)
    assert list(tmp_path.iterdir()) == []
