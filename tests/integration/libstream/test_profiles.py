"""Profiles from files: found where they are said to lie, by programs and by the filesystem."""

import json
import os
from pathlib import Path

import pytest
from tests.integration import pairs
from tests.integration.libstream.harness import PRELOAD, STREAM_RUN, FakeMount, run

MINE = "[[rule]]\nname = '*.mine'\nvstream = 'my-own'\n"
BROKEN = "[[rule]]\nname = 'x'\nlife = 'brief'\nvstream = 'x'\n" + MINE


def profiles_below(folder: Path, name: str, text: str) -> Path:
    """Put a profile where a user's lie below ``folder``."""
    place = folder / "streamfs/profiles.d"
    place.mkdir(parents=True)
    (place / f"{name}.toml").write_text(text)
    return place / f"{name}.toml"


def test_a_users_profile_counts_and_its_mistake_is_said(mount: FakeMount, tmp_path: Path) -> None:
    file = profiles_below(tmp_path / "config", "mine", BROKEN)
    mount.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    done = mount.run("sh", "-c", "echo > a.mine; echo > x; echo > a-wal")
    assert done.status == 0
    assert done.err == (f"stream-run: {file}:3:8: a life is none, short, medium, long or extreme\n")
    assert mount.labels() == {"a.mine": "my-own", "a-wal": "sqlite-wal"}


def test_home_is_looked_at_without_xdg(mount: FakeMount, tmp_path: Path) -> None:
    profiles_below(tmp_path / "home/.config", "mine", MINE)
    mount.env["HOME"] = str(tmp_path / "home")
    assert mount.run("sh", "-c", "echo > a.mine").err == ""
    assert mount.labels() == {"a.mine": "my-own"}


def test_a_profile_is_taken_by_name_or_path(mount: FakeMount, tmp_path: Path) -> None:
    (mount.path / "here.toml").write_text(MINE)
    touch = ("sh", "-c", "cd /; echo > $0/a.mine; echo > $0/a-wal", mount.path)
    assert mount.run(*touch, options=("--profile", "./here.toml")).err == ""
    assert mount.labels() == {"a.mine": "my-own"}
    done = run(STREAM_RUN, "--profile", tmp_path / "none.toml", "true")
    assert done.status == 66
    assert done.err == f"stream-run: {tmp_path}/none.toml: there is no such file\n"
    (mount.path / "a.mine").unlink()


def test_without_stream_run_the_preload_library_reads_profiles_itself(
    mount: FakeMount, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(BROKEN)
    env = mount.env | {"STREAMFS_PROFILE": str(tmp_path / "p.toml")}
    env["LD_PRELOAD"] += f":{PRELOAD}"
    done = run("sh", "-c", "echo > a.mine; echo > a-wal", env=env, cwd=mount.path)
    assert (done.status, done.err) == (0, "")
    assert mount.labels() == {"a.mine": "my-own"}


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a mount namespace with an /etc of its own")
def test_the_machines_profiles_lie_in_etc_and_a_users_stand_before_them(
    mount: FakeMount, tmp_path: Path
) -> None:
    etc = tmp_path / "etc"
    (etc / "streamfs/profiles.d").mkdir(parents=True)
    (etc / "streamfs/profiles.d/mine.toml").write_text(MINE.replace("my-own", "the-machines"))
    for name in ("ld.so.cache", "passwd"):
        (etc / name).write_bytes(Path("/etc", name).read_bytes())
    script = f"mount --bind {etc} /etc && {STREAM_RUN} -- sh -c 'echo > a.mine'"
    own = ("unshare", "-m", "sh", "-c", script)
    assert run(*own, env=mount.env, cwd=mount.path).status == 0
    assert mount.labels() == {"a.mine": "the-machines"}
    profiles_below(tmp_path / "config", "mine", MINE)
    env = mount.env | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert run(*own, env=env, cwd=mount.path).status == 0
    assert mount.labels() == {"a.mine": "my-own"}


def test_a_mount_knows_profiles_for_programs_that_cannot_be_preloaded(
    pair: pairs.Pair, tmp_path: Path
) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "mine.toml").write_text(BROKEN)
    source = tmp_path / "static.c"
    source.write_text(
        "#include <stdio.h>\nint main(int n, char** v) { while (--n) if (!fopen(v[n], "
        '"w")) return 1; return 0; }'
    )
    assert run("cc", "-static", "-o", tmp_path / "static", source).status == 0
    mounted = pair.mount(f"profiles={folder}")
    assert f"{folder}/mine.toml:3:8: a life is" in mounted.log.read_text()
    for name, label in {"a.mine": "my-own", "a-wal": "sqlite-wal", "app.log": None}.items():
        assert run(tmp_path / "static", mounted / name).status == 0
        shown = run("getfattr", "--only-values", "-n", "user.streamfs.vstream", mounted / name)
        assert label is None or shown.out == label
        assert label is not None or shown.out.startswith("ctx:")
    mounted.unmount()
    mounted = pair.mount("profile=logs", "profiles=none")
    assert run(tmp_path / "static", mounted / "b.log", mounted / "b-wal").status == 0
    streams = json.loads(
        pairs.run(pairs.BIN / "streamctl", "streams", mounted.point, "--json").stdout
    )
    assert "log" in json.dumps(streams)
    shown = run("getfattr", "--only-values", "-n", "user.streamfs.vstream", mounted / "b.log")
    assert shown.out == "log"
    mounted.unmount()
    refused = run(
        pairs.BIN / "streamfs", pair.data, pair.point, "-f", "-o", f"meta={pair.meta},profile=x"
    )
    assert refused.status != 0
    assert "no profile is called 'x' (default, " in refused.err
