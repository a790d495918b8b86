"""libstream as programs meet it: the header, the exported symbols, the preload library, stream-run.

Two promises above all. A program's results are the same with and without the preload library; and
on a streamfs mount each file gets the label that its name or its program asks for. The mount here
is libstream/fake_streamfs.c, a second preload library that answers the hint ioctl.
"""

import os
import re
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
HELPERS = Path(__file__).resolve().parent / "libstream"
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
LIB = BIN.parent / "lib"
STREAM_RUN = BIN / "stream-run"
PRELOAD = LIB / "libstream_preload.so"
PRELOAD_SIZE_MAX = 64 * 1024

RWH_SHORT, RWH_LONG = 2, 4
F_SET_RW_HINT, F_GET_FILE_RW_HINT, F_SET_FILE_RW_HINT = 1036, 1037, 1038


class Result(NamedTuple):
    """What a program shows of itself."""

    status: int
    out: str
    err: str


class Asked(NamedTuple):
    """One question to the fake mount."""

    command: str
    name: str
    number: int
    rw_hint: int
    path: str


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Result:
    """Run a command without the variables that this test is about, but for those given."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("STREAM_", "LD_", "PYTEST"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        env=clean | (env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def compile_c(out: Path, *words: str | Path) -> Path:
    done = run("cc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}", "-o", out, *words)
    assert done.status == 0, done.err
    return out


@pytest.fixture(scope="session")
def helpers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the compiled helper programs."""
    folder = tmp_path_factory.mktemp("libstream")
    compile_c(folder / "entry_points", HELPERS / "entry_points.c")
    compile_c(folder / "processes", HELPERS / "processes.c", "-pthread")
    compile_c(folder / "fake.so", HELPERS / "fake_streamfs.c", "-shared", "-fPIC")
    return folder


class FakeMount:
    """A folder that answers like a streamfs mount, to programs started with run()."""

    def __init__(self, helpers: Path, tmp: Path) -> None:
        self.path = tmp / "mount"
        self.state = tmp / "state"
        self.path.mkdir()
        self.state.mkdir()
        self.env = {
            "LD_PRELOAD": str(helpers / "fake.so"),
            "FAKE_STREAMFS_MOUNT": str(self.path),
            "FAKE_STREAMFS_STATE": str(self.state),
        }

    def run(self, *command: str | Path, options: tuple[str | Path, ...] = ()) -> Result:
        return run(STREAM_RUN, *options, "--", *command, env=self.env, cwd=self.path)

    def asked(self) -> Iterator[Asked]:
        log = self.state / "log"
        for line in log.read_text().splitlines() if log.exists() else []:
            command, name, number, rw_hint, path = line.split(" ", 4)
            yield Asked(command, name, int(number), int(rw_hint), path)

    def labels(self) -> dict[str, str]:
        """Return the name last given to each file, by the file's own name."""
        return {Path(a.path).name: a.name for a in self.asked() if a.command == "name"}


@pytest.fixture
def mount(helpers: Path, tmp_path: Path) -> FakeMount:
    return FakeMount(helpers, tmp_path)


def python(source: str) -> list[str]:
    """Return a command that runs a Python program; fcntl takes the raw bytes it is given."""
    return [sys.executable, "-S", "-E", "-c", textwrap.dedent(source)]


# --- header and symbols ---


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [("cc", s) for s in ("c89", "c99", "c11", "c17", "c2x")]
    + [("c++", s) for s in ("c++98", "c++11", "c++20", "c++2b")],
)
def test_the_header_compiles_alone_in_every_standard(
    compiler: str, standard: str, tmp_path: Path
) -> None:
    source = tmp_path / ("a.c" if compiler == "cc" else "a.cc")
    source.write_text(
        "#include <libstream.h>\n#include <libstream.h>\n"
        "int main(void) {\n"
        "  struct stream_vstream stream;\n"
        '  return stream_open(&stream, "a") == 0 && stream_hint_fd(0, STREAM_LIFE_SHORT) < 2\n'
        "             ? 0 : 1;\n}\n"
    )
    program = tmp_path / "a"
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-pedantic-errors", "-Werror"]
    include = f"-I{ROOT / 'libstream/include'}"
    link = [f"-L{LIB}", "-lstream", f"-Wl,-rpath,{LIB}"]
    done = run(compiler, f"-std={standard}", *warnings, include, "-o", program, source, *link)
    assert done.status == 0, done.err
    assert run(program).status == 0


def exported(library: Path) -> set[str]:
    """Return the symbols a library defines for others, without version nodes."""
    lines = run("nm", "-D", "--defined-only", library).out.splitlines()
    return {line.split()[2] for line in lines if line.split()[1] != "A"}


def names_in(export_map: Path) -> set[str]:
    text = export_map.read_text()
    block = text[text.index("global:") + len("global:") : text.index("local:")]
    assert re.search(r"local:\s*\*;", text)
    return set(re.findall(r"(\w+);", block))


def test_the_library_exports_its_map_and_the_map_is_the_header() -> None:
    names = names_in(ROOT / "libstream/libstream.map")
    assert exported(LIB / "libstream.so") == {f"{name}@@LIBSTREAM_0.1" for name in names}
    header = (ROOT / "libstream/include/libstream.h").read_text()
    assert names == set(re.findall(r"^(?:int|const char\*) (stream_\w+)\(", header, re.MULTILINE))


def test_the_preload_library_exports_what_it_stands_in_for_and_nothing_else() -> None:
    header = (ROOT / "libstream/preload.h").read_text()
    names = set(re.findall(r"X\((\w+)\)", header.split("#define PRELOAD_FUNCTIONS(X)")[1]))
    assert len(names) == 26
    assert exported(PRELOAD) == names == names_in(ROOT / "libstream/preload.map")


@pytest.mark.parametrize("library", ["libstream.so", "libstream_preload.so"])
def test_nothing_allocates_or_locks(library: str) -> None:
    used = {line.split()[1] for line in run("nm", "-D", "-u", LIB / library).out.splitlines()}
    names = {name.split("@")[0] for name in used}
    forbidden = re.compile(r".*(alloc|pthread|mtx_|call_once|free$|strdup|asprintf|setlocale)")
    assert not {name for name in names if forbidden.match(name)}
    assert run("readelf", "-d", LIB / library).out.count("(NEEDED)") == 1


def test_the_preload_library_is_small(tmp_path: Path) -> None:
    run("strip", "-o", tmp_path / "stripped.so", PRELOAD)
    assert (tmp_path / "stripped.so").stat().st_size <= PRELOAD_SIZE_MAX


def test_pkg_config_finds_what_was_installed(tmp_path: Path) -> None:
    done = run("cmake", "--install", BIN.parent / "libstream", "--prefix", tmp_path)
    assert done.status == 0, done.err
    folders = [path.parent for path in tmp_path.rglob("libstream.pc")]
    assert len(folders) == 1
    text = next(tmp_path.rglob("libstream.pc")).read_text()
    assert re.search(r"^Version: \d+\.\d+\.\d+$", text, re.MULTILINE)
    env = {"PKG_CONFIG_PATH": str(folders[0])}
    flags = run(
        "pkg-config", f"--define-variable=prefix={tmp_path}", "--libs", "libstream", env=env
    )
    assert "-lstream" in flags.out
    assert (tmp_path / "bin/stream-run").exists()


# --- the same results with and without ---


def with_and_without(tmp: Path, *command: str | Path, env: dict[str, str]) -> tuple[Result, Result]:
    """Run in two fresh folders, {} in the command standing for the folder."""
    results = []
    for kind, runner in (("plain", ()), ("preload", (STREAM_RUN, "--"))):
        folder = tmp / kind
        folder.mkdir()
        words = [str(word).replace("{}", str(folder)) for word in command]
        results.append(run(*runner, *words, env=env, cwd=folder))
    plain = sorted(p.name for p in (tmp / "plain").iterdir() if "XXXXXX" not in p.name)
    preloaded = sorted(p.name for p in (tmp / "preload").iterdir())
    assert len(plain) == len(preloaded)
    return results[0], results[1]


def test_every_entry_point_behaves_as_without_the_library(helpers: Path, tmp_path: Path) -> None:
    plain, preloaded = with_and_without(tmp_path, helpers / "entry_points", "{}", env={})
    assert plain.status == 0
    assert plain.out.count("\n") > 55
    assert preloaded == plain


@pytest.mark.parametrize("error", [5, 11, 12, 13, 22, 28, 30, 38, 95, 110])
def test_a_hint_that_fails_never_fails_the_program(
    helpers: Path, mount: FakeMount, tmp_path: Path, error: int
) -> None:
    """EIO, ENOMEM, ENOSPC, EROFS and others: only the kernel's own answers reach the program."""
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path), "FAKE_STREAMFS_ERRNO": str(error)}
    program = helpers / "entry_points"
    plain, preloaded = with_and_without(tmp_path, program, "{}", env=env)
    assert plain.status == 0
    assert preloaded == plain
    assert any(asked.command == "query" for asked in mount.asked())


def test_a_mount_changes_nothing_but_the_two_repairs(
    helpers: Path, mount: FakeMount, tmp_path: Path
) -> None:
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path)}
    plain, preloaded = with_and_without(tmp_path, helpers / "entry_points", "{}", env=env)
    differences = {
        line.split(":")[0]
        for line, other in zip(plain.out.splitlines(), preloaded.out.splitlines(), strict=True)
        if line != other
    }
    assert differences <= {
        "F_SET_FILE_RW_HINT",
        "F_SET_FILE_RW_HINT nowhere",
        "F_GET_FILE_RW_HINT",
    }
    assert "F_SET_FILE_RW_HINT nowhere: -1 errno 14 " in preloaded.out


@pytest.mark.parametrize("where", ["elsewhere", "mount"])
def test_threads_signals_and_children_open_files_as_without(
    helpers: Path, mount: FakeMount, tmp_path: Path, where: str
) -> None:
    env = mount.env | {"FAKE_STREAMFS_MOUNT": str(tmp_path) if where == "mount" else "/none"}
    env["PROCESSES_FOLDER"] = str(mount.path)
    plain, preloaded = with_and_without(tmp_path, helpers / "processes", "{}", env=env)
    assert plain.status == 0
    assert preloaded == plain
    labels = mount.labels()
    expected = {f"thread-{thread}-{i}-journal" for thread in (*range(64), 1000) for i in range(50)}
    expected |= {"vfork-journal", "signal-journal", "exec-journal", "early-journal"}
    assert set(labels) == (expected if where == "mount" else set())
    assert set(labels.values()) <= {"sqlite-journal"}


SQL = """
PRAGMA journal_mode={mode}; PRAGMA cache_size=10; PRAGMA temp_store=FILE; PRAGMA cache_spill=1;
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000)
  INSERT INTO t SELECT i, hex(i*7919)||printf('%0200d', i) FROM n;
CREATE TEMP TABLE u AS SELECT * FROM t;
SELECT count(*), sum(a), max(b) FROM u;
SELECT count(*) FROM (SELECT DISTINCT b FROM t ORDER BY b DESC);
UPDATE t SET b = b||'x' WHERE a % 3 = 0;
VACUUM;
SELECT sum(length(b)) FROM t; PRAGMA integrity_check;
"""


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_sqlite_gives_the_same_answers(mount: FakeMount, tmp_path: Path, mode: str) -> None:
    sql = SQL.replace("{mode}", mode)
    for place in ("/none", str(tmp_path)):
        work = tmp_path / place.strip("/").replace("/", "-")
        work.mkdir()
        env = mount.env | {"FAKE_STREAMFS_MOUNT": place}
        plain, preloaded = with_and_without(work, "sqlite3", "{}/a.db", sql, env=env)
        assert plain.status == 0
        assert plain.out.endswith("ok\n")
        assert preloaded == plain
        assert (work / "plain/a.db").read_bytes() == (work / "preload/a.db").read_bytes()


def test_programs_the_library_cannot_enter_run_as_ever(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text('#include <stdio.h>\nint main(void) { return fopen("a-journal", "w") == 0; }')
    static = compile_c(tmp_path / "static", source, "-static")
    assert run(STREAM_RUN, static, cwd=tmp_path) == Result(0, "", "")
    assert run(STREAM_RUN, "env", "-i", static, cwd=tmp_path) == Result(0, "", "")


def test_a_program_with_the_address_sanitizer_runs_as_ever(tmp_path: Path) -> None:
    program = tmp_path / "asan"
    compile_c(program, HELPERS / "entry_points.c", "-fsanitize=address")
    plain, preloaded = with_and_without(
        tmp_path, program, "{}", env={"ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert plain.status == 0
    assert preloaded == plain


# --- which label, on a mount ---


def test_every_entry_point_labels_what_it_opens_for_writing(
    helpers: Path, mount: FakeMount
) -> None:
    assert mount.run(helpers / "entry_points", mount.path).status == 0
    labels = mount.labels()
    header = (ROOT / "libstream/preload.h").read_text()
    for function in re.findall(r"X\((\w+)\)", header.split("#define PRELOAD_FUNCTIONS(X)")[1]):
        if function.startswith(("fcntl", "tmpfile")):
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


def hints(path: str, *steps: tuple[int, bytes], mode: str = "w") -> list[str]:
    """Return a command that opens a file and calls fcntl; prints results or errnos."""
    return python(f"""
        import fcntl
        file = open({path!r}, {mode!r})
        for command, argument in {steps!r}:
            try:
                print(fcntl.fcntl(file, command, argument).hex())
            except OSError as error:
                print(error.errno)
    """)


def test_a_programs_own_hint_reaches_the_mount_and_wins_over_its_name(mount: FakeMount) -> None:
    long = struct.pack("Q", RWH_LONG)
    assert mount.run(*hints("a-journal", (F_SET_RW_HINT, long))).out == long.hex() + "\n"
    assert [a.command for a in mount.asked()] == ["query", "name", "rw_hint"]
    assert list(mount.asked())[-1].rw_hint == RWH_LONG
    mount.run("sh", "-c", "echo x >> a-journal; echo x > a-journal")
    later = [a.command for a in mount.asked()][3:]
    assert later == ["query", "query"], "opened again, the file keeps what its program said"


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
    env = mount.env | {"STREAM_PROFILE": "none-such"}
    env["LD_PRELOAD"] += f":{PRELOAD}"
    before = list(mount.asked())
    assert run("sh", "-c", "echo > b-wal", env=env, cwd=mount.path) == Result(0, "", "")
    assert list(mount.asked()) == before


# --- stream-run ---


def test_stream_run_ends_as_its_command_ends(tmp_path: Path) -> None:
    for options in ((), ("--explain",)):
        assert run(STREAM_RUN, *options, "--", "sh", "-c", "exit 17").status == 17
        assert run(STREAM_RUN, *options, "true").status == 0
        assert run(STREAM_RUN, *options, "sh", "-c", "kill -9 $$").status == -signal.SIGKILL
        assert run(STREAM_RUN, *options, "no-such-command").status == 127
        assert run(STREAM_RUN, *options, tmp_path).status == 126


def test_stream_run_names_the_profiles_there_are() -> None:
    done = run(STREAM_RUN, "--profile", "oracle", "--", "true")
    assert done.status == 64
    for known in ("oracle", "default", "sqlite", "rocksdb", "postgresql"):
        assert known in done.err


@pytest.mark.parametrize(
    "options",
    [
        ["--vstream", "a/b", "true"],
        ["--vstream", "7", "true"],
        ["--vstream", "", "true"],
        ["--unknown", "true"],
        ["--profile"],
        [],
    ],
)
def test_stream_run_refuses_what_makes_no_sense(options: list[str]) -> None:
    done = run(STREAM_RUN, *options)
    assert (done.status, done.out) == (64, "")
    assert done.err


def test_stream_run_wants_a_folder_for_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("/no/such/folder", str(tmp_path / "file")):
        done = run(STREAM_RUN, "--tmp", path, "true")
        assert done.status == 66
        assert path in done.err
    done = run(STREAM_RUN, "--tmp", tmp_path, "sh", "-c", "echo $TMPDIR $SQLITE_TMPDIR")
    assert done.out == f"{tmp_path} {tmp_path}\n"
    assert "not on a streamfs mount" in done.err


def test_stream_run_keeps_what_is_preloaded_already(helpers: Path) -> None:
    show = ("sh", "-c", "echo $LD_PRELOAD")
    assert run(STREAM_RUN, *show).out.endswith("/libstream_preload.so\n")
    fake = {"LD_PRELOAD": str(helpers / "fake.so")}
    once = run(STREAM_RUN, *show, env=fake).out
    assert once.startswith(f"{helpers}/fake.so:")
    assert run(STREAM_RUN, STREAM_RUN, *show, env=fake).out == once


def test_explain_says_file_rule_label_and_what_the_mount_said(
    mount: FakeMount, tmp_path: Path
) -> None:
    script = f"echo > a-wal; echo > a-wal; echo > {tmp_path}/b-journal; echo > plain; echo out"
    done = mount.run("sh", "-c", script, options=("--explain",))
    assert (done.status, done.out) == (0, "out\n")
    assert done.err.splitlines() == [
        "stream-run: 3 hints",
        f"  {mount.path}/a-wal: sqlite-wal, by *-wal: honoured (2 times)",
        f"  {tmp_path}/b-journal: sqlite-journal, by *-journal: not honoured: not on streamfs",
    ]
    mount.env["FAKE_STREAMFS_ERRNO"] = "28"
    done = mount.run("sh", "-c", "echo > a-wal", options=("--explain",))
    assert done.err.splitlines()[1].endswith(": No space left on device")


def test_explain_shows_own_hints_and_what_they_kept(mount: FakeMount) -> None:
    own = hints("a\n-journal", (F_SET_RW_HINT, struct.pack("Q", RWH_SHORT)))
    done = mount.run(*own, options=("--explain",))
    assert f"  {mount.path}/a\\012-journal: short, by F_SET_RW_HINT: honoured" in done.err
    done = mount.run("sh", "-c", "echo > 'a\n-journal'", options=("--explain",))
    assert done.err.splitlines()[1].endswith("by *-journal: kept: has a label of its own")


def test_explain_reports_what_a_killed_command_did(mount: FakeMount) -> None:
    done = mount.run("sh", "-c", "echo > a-wal; kill -9 $$", options=("--explain",))
    assert done.status == -signal.SIGKILL
    assert "a-wal: sqlite-wal" in done.err
    assert not [path for path in Path("/tmp").glob("stream-run-*") if path.stat().st_mtime > START]


START = time.time()


def test_a_signal_meant_for_the_command_reaches_it(tmp_path: Path) -> None:
    script = f"trap 'exit 9' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [STREAM_RUN, "--explain", "sh", "-c", script], stderr=subprocess.PIPE
    ) as running:
        deadline = time.monotonic() + 30
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        running.terminate()
        running.communicate(timeout=30)
    assert running.returncode == 9
