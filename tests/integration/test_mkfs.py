"""mkfs.streamfs: what it names, refuses, wipes and says."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Pair, run
from tests.integration.test_tools import NOT_EMPTY, mkfs, refused, tool


@pytest.mark.parametrize("kind", ["ext4", "xfs", "swap", "gpt", "dos", "LVM2_member"])
@pytest.mark.parametrize("which", ["META", "DATA"])
def test_a_foreign_signature_is_named_and_with_force_gone(
    tmp_path: Path, kind: str, which: str
) -> None:
    meta, data = tmp_path / "meta", tmp_path / "data"
    for path, size in ((meta, 32), (data, 320)):
        path.touch()
        os.truncate(path, size << 20)
    path = meta if which == "META" else data
    if kind == "xfs" and which == "META":
        os.truncate(meta, 320 << 20)  # its least
        os.truncate(data, 1 << 30)
    signs: dict[str, list[str | Path]] = {
        "ext4": ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", path],
        "xfs": ["mkfs.xfs", "-q", path],
        "swap": ["mkswap", "-q", path],
        "gpt": ["sh", "-c", f"echo 'label: gpt\n;' | sfdisk -q {path}"],
        "dos": ["sh", "-c", f"echo 'label: dos\n;' | sfdisk -q {path}"],
        "LVM2_member": [
            "sh",
            "-c",
            f"printf 'LABELONE\\1\\0\\0\\0\\0\\0\\0\\0' | "
            f"dd of={path} bs=512 seek=1 conv=notrunc status=none",
        ],
    }
    run(*signs[kind])
    done = tool("mkfs.streamfs", "--meta", meta, data)
    named = kind if kind != "LVM2_member" else "data"
    refused(NOT_EMPTY, f"{path} holds .*{named}.*-f overwrites", done)
    run(BIN / "mkfs.streamfs", "-q", "-f", "--meta", meta, data)
    for each in (meta, data):
        assert run("blkid", "-p", each, check=False).returncode == 2, "a signature is left"
        assert run("wipefs", "-n", each).stdout == ""


def test_mkfs_takes_label_and_uuid_and_says_where_the_space_goes(
    make_pair: Callable[..., Pair],
) -> None:
    one = make_pair()
    uuid = "01234567-89ab-4cde-8f01-23456789abcd"
    said = mkfs(one, "-L", "mine", "-U", uuid).stdout
    assert said.splitlines()[0] == f"filesystem {uuid} mine"
    assert re.search(r"META holds .* of journal, .* of checksums, .* for inodes and names", said)
    assert re.search(r"DATA holds .* of label, metadata log and snapshots, .* for files", said)
    shown = json.loads(run(BIN / "streamctl", "show-super", one.data, "--json").stdout)
    assert (shown["label"]["uuid"], shown["label"]["label"]) == (uuid, "mine")
    assert tool("mkfs.streamfs", "-V").stdout.startswith("streamfs ")


def test_mkfs_warns_when_losing_meta_would_lose_all(make_pair: Callable[..., Pair]) -> None:
    one = make_pair()
    warning = re.compile("no log on DATA|losing it loses all files")
    assert warning.search(mkfs(one, "--no-meta-log").stdout)
    assert not warning.search(mkfs(one, "-f").stdout)


def test_mkfs_and_fsck_speak_json_too(make_pair: Callable[..., Pair]) -> None:
    one = make_pair()
    made = json.loads(mkfs(one, "--json", "-L", "mine").stdout)
    assert (made["schema"], made["label"], made["dry_run"]) == (1, "mine", False)
    assert made["layout"]["meta_bytes"] == one.meta.stat().st_size
    with one.meta.open("r+b") as meta:  # a bit of the block bitmap says what no file does
        bitmap = made["layout"]["superblock_bytes"] + made["layout"]["journal_bytes"]
        meta.seek(bitmap + made["layout"]["bitmap_bytes"] - 64)
        meta.write(b"\xff")
    for words, code, state in ((["-n", "-f"], 4, "problems left"), (["-y"], 1, "repaired")):
        done = one.fsck("--json", *words)
        found = json.loads(done.stdout)
        assert (done.returncode, found["state"], found["schema"]) == (code, state, 1)
        assert len(found["problems"]) >= 1
    assert json.loads(one.fsck("--json", "-a").stdout)["state"] == "clean"


@pytest.mark.parametrize("before", ["absent", "empty", "there"])
@pytest.mark.usefixtures("needs_fuse")
def test_a_mkfs_that_fails_leaves_what_was_there(tmp_path: Path, before: str) -> None:
    """mkfs fails in every way: before META is open, while it is, and after."""
    meta, data = tmp_path / "meta", tmp_path / "data"
    data.write_bytes(b"")
    os.truncate(data, 320 << 20)
    if before != "absent":
        meta.write_bytes(b"" if before == "empty" else b"x" * 1000)
    files = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    mirror = tmp_path / "none" / "mirror"
    failing: tuple[tuple[str | Path, ...], ...] = (
        ("--meta-size", "1K"),
        ("--meta-size", "64K"),
        ("--mirror", mirror),
        ("-n",),
    )
    for words in failing:
        done = tool("mkfs.streamfs", *words, "--meta", meta, data)
        assert (done.returncode == 0) == (words == ("-n",) and before != "there"), words
        assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == files, words
    if before != "there":
        run(BIN / "mkfs.streamfs", "-q", "--meta", meta, data)
