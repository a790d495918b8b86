"""On a streamfs mount each file gets the label that its name or its program asks for."""

import re
import struct
from pathlib import Path

from tests.integration.libstream.harness import (
    F_GET_FILE_RW_HINT,
    F_SET_FILE_RW_HINT,
    F_SET_RW_HINT,
    PRELOAD,
    RWH_LONG,
    RWH_SHORT,
    SQL,
    FakeMount,
    Result,
    hints,
    preload_functions,
    python,
    run,
)


def test_every_entry_point_labels_what_it_opens_for_writing(
    helpers: Path, mount: FakeMount
) -> None:
    assert mount.run(helpers / "entry_points", mount.path).status == 0
    labels = mount.labels()
    for function in sorted(preload_functions()):
        if function.startswith(("fcntl", "tmpfile", "posix_fadvise")):
            continue
        mine = [label for name, label in labels.items() if re.match(rf"{function}\W", name)]
        assert mine, f"{function} gives no label"
        assert set(mine) <= {"sqlite-journal", "sqlite-super-journal"}
    assert "tmpfile" in labels.values()


def test_tmpfile_is_labelled_wherever_it_is(helpers: Path, mount: FakeMount) -> None:
    mount.env["FAKE_STREAMFS_MOUNT"] = "/"
    mount.run(helpers / "entry_points", mount.path)
    nameless = [a for a in mount.asked() if re.search(r"/#\d+ \(deleted\)$", a.path)]
    asked = [a for a in nameless if a.command == "query"]
    assert len(asked) == 3, "open(O_TMPFILE), tmpfile, tmpfile64"
    assert {a.name for a in nameless if a.command == "name"} == {"tmpfile"}


def test_a_file_opened_to_be_read_costs_no_question(mount: FakeMount) -> None:
    (mount.path / "a-journal").write_text("x")
    assert mount.run("cat", "a-journal") == Result(0, "x", "")
    assert mount.run(*python("open('a-journal').read()")).status == 0
    assert not list(mount.asked())


def test_a_name_that_no_rule_knows_costs_no_question(mount: FakeMount) -> None:
    assert mount.run("sh", "-c", "echo x > foo.log; echo x > 0001.log").status == 0
    assert not list(mount.asked())
    assert mount.run("sh", "-c", "echo x > 000012.log").status == 0
    assert mount.labels() == {"000012.log": "rocksdb-wal"}


def test_a_label_the_file_has_already_is_not_sent_again(mount: FakeMount) -> None:
    for _ in range(3):
        assert mount.run("sh", "-c", "echo x >> a-wal").status == 0
    assert [a.command for a in mount.asked()] == ["query", "name", "query", "query"]


def test_a_program_asks_once_of_a_file_and_again_of_the_next_with_its_name(
    mount: FakeMount,
) -> None:
    """Files come and go under one name, as journals do, and may get the inode of the one before."""
    done = mount.run(
        *python("""
        import os
        for _ in range(3):
            for _ in range(5):
                os.close(os.open("a-journal", os.O_RDWR | os.O_CREAT))
            os.unlink("a-journal")
        os.close(os.open("a-journal", os.O_RDWR | os.O_CREAT))
        os.rename("a-journal", "a-wal")
        os.close(os.open("a-wal", os.O_RDWR))
    """)
    )
    assert done == Result(0, "", "")
    asked = [(a.command, a.name) for a in mount.asked() if a.command == "name"]
    assert [name for _, name in asked[-2:]] == ["sqlite-journal", "sqlite-wal"]
    questions = [a for a in mount.asked() if a.command == "query"]
    assert len(questions) == 5, "four files, one of them under two names"


def test_sqlite_files_get_their_labels_and_temporaries_come_to_the_mount(mount: FakeMount) -> None:
    sql = (
        "ATTACH 'b.db' AS b; PRAGMA cache_size=10; PRAGMA temp_store=FILE;"
        "BEGIN; CREATE TABLE main.t(a); CREATE TABLE b.t(a); COMMIT;" + SQL.replace("{mode}", "wal")
    ).replace("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)", "DROP TABLE t; CREATE TABLE t(a, b)")
    done = mount.run("sqlite3", "a.db", sql, options=("--tmp", mount.path))
    assert (done.status, done.err) == (0, "")
    labels = mount.labels()
    assert labels.pop("a.db-journal") == labels.pop("b.db-journal") == "sqlite-journal"
    assert labels.pop("a.db-wal") == "sqlite-wal"
    assert labels.pop("a.db-shm") == "sqlite-shm"
    for name, label in labels.items():
        kinds = {"b.db-wal": "sqlite-wal", "b.db-shm": "sqlite-shm"}
        temporary = "sqlite-super-journal" if "-mj" in name else "sqlite-temp"
        assert label == kinds.get(name, temporary), name
    assert {"sqlite-super-journal", "sqlite-temp"} <= set(labels.values())


def test_a_programs_own_hint_reaches_the_mount_and_wins_over_its_name(mount: FakeMount) -> None:
    long = struct.pack("Q", RWH_LONG)
    assert mount.run(*hints("a-journal", (F_SET_RW_HINT, long))).out == long.hex() + "\n"
    assert [a.command for a in mount.asked()] == ["query", "name", "rw_hint"]
    assert list(mount.asked())[-1].rw_hint == RWH_LONG
    mount.run("sh", "-c", "echo x >> a-journal; echo x > a-journal")
    later = [a.command for a in mount.asked()][3:]
    assert later == ["query"], "opened again, the file keeps what its program said; asked once"


def test_a_persons_label_wins_over_a_name(mount: FakeMount) -> None:
    mount.run("sh", "-c", "echo > a-wal", options=("--vstream", "mine"))
    assert mount.labels() == {"a-wal": "mine"}
    mount.run("sh", "-c", "echo > a-wal")
    assert mount.labels() == {"a-wal": "mine"}
    mount.run("sh", "-c", "echo > a-wal", options=("--vstream", "other"))
    assert mount.labels() == {"a-wal": "other"}
    own = hints("a-wal", (F_SET_RW_HINT, struct.pack("Q", RWH_LONG)))
    mount.run(*own)
    mount.run("sh", "-c", "echo > a-wal", options=("--vstream", "third"))
    assert mount.labels() == {"a-wal": "other"}, "the program's own hint wins even over that"


def test_a_hint_in_four_bytes_is_understood_on_a_mount_only(
    mount: FakeMount, tmp_path: Path
) -> None:
    """RocksDB before 9.3.1: what follows the enum on the stack is not part of the hint."""
    half = struct.pack("II", RWH_SHORT, 0xDEADBEEF)
    assert mount.run(*hints("000012.log", (F_SET_RW_HINT, half))).out == half.hex() + "\n"
    last = list(mount.asked())[-1]
    assert (last.command, last.rw_hint) == ("rw_hint", RWH_SHORT)
    elsewhere = str(tmp_path / "000012.log")
    assert mount.run(*hints(elsewhere, (F_SET_RW_HINT, half))).out == "22\n"
    assert mount.run(*hints("a", (F_SET_RW_HINT, struct.pack("Q", 6)))).out == "22\n"


def test_the_hint_a_descriptor_had_before_linux_5_18_is_back_on_a_mount(
    mount: FakeMount, tmp_path: Path
) -> None:
    long, none = struct.pack("Q", RWH_LONG), struct.pack("Q", 0)
    steps = [(F_GET_FILE_RW_HINT, none), (F_SET_FILE_RW_HINT, long), (F_GET_FILE_RW_HINT, none)]
    done = mount.run(*hints("a", *steps))
    assert done.out.split() == [none.hex(), long.hex(), long.hex()]
    assert [a.rw_hint for a in mount.asked() if a.command == "rw_hint"] == [RWH_LONG]
    assert mount.run(*hints("a", steps[0])).out.split() == [none.hex()]
    assert mount.run(*hints(str(tmp_path / "a"), *steps)).out.split() == ["22"] * 3


def test_a_descriptor_used_again_has_no_hint_of_the_file_before(mount: FakeMount) -> None:
    done = mount.run(
        *python("""
        import fcntl, os, struct
        def hint(fd):
            return struct.unpack("Q", fcntl.fcntl(fd, 1037, bytes(8)))[0]
        first = os.open("a", os.O_RDWR | os.O_CREAT)
        fcntl.fcntl(first, 1038, struct.pack("Q", 3))
        before = hint(first)
        os.close(first)
        again = os.open("a", os.O_RDWR | os.O_CREAT)
        assert again == first
        print(before, hint(again))
    """)
    )
    assert done == Result(0, "3 0\n", "")


def test_a_profile_narrows_and_an_unknown_one_in_the_environment_silences(mount: FakeMount) -> None:
    write = ("sh", "-c", "echo > a-wal; echo > 1234567.log; echo > pg_wal-no")
    mount.run(*write, options=("--profile", "rocksdb"))
    assert mount.labels() == {"1234567.log": "rocksdb-wal"}
    env = mount.env | {"STREAMFS_PROFILE": "none-such"}
    env["LD_PRELOAD"] += f":{PRELOAD}"
    before = list(mount.asked())
    assert run("sh", "-c", "echo > b-wal", env=env, cwd=mount.path) == Result(0, "", "")
    assert list(mount.asked()) == before
