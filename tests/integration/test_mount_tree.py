"""Trees and databases: what was copied in is what is there after a remount."""

import hashlib
import os
import sqlite3
import stat
from pathlib import Path

from tests.integration.pairs import Pair, run

FILES = 20_000


def make_tree(root: Path) -> None:
    """Files of many sizes, modes, times, links and attributes."""
    for i in range(FILES):
        folder = root / f"d{i % 97}" / f"e{i % 13}"
        if i < 97 * 13:
            folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"file {i} {'x' * (i % 150)}"
        path.write_bytes(hashlib.sha256(str(i).encode()).digest() * (i % 400 if i % 50 else 4000))
        path.chmod([0o644, 0o600, 0o755, 0o444][i % 4])
        if i % 10 == 0:
            os.link(path, folder / f"link {i}")
            (folder / f"symlink {i}").symlink_to(path.name)
            os.utime(folder / f"symlink {i}", ns=(i, i * 10**14), follow_symlinks=False)
            os.setxattr(path, "user.number", str(i).encode() * (1 + i % 40))
        os.utime(path, ns=(i * 10**15, i * 10**14 + 7))
    for folder in root.rglob("*"):
        if folder.is_dir():
            os.utime(folder, ns=(1, 2))


def fingerprint(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything that a copy must keep, by name. Inode numbers as groups of names."""
    first: dict[int, str] = {}
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        name = str(path.relative_to(root))
        regular = stat.S_ISREG(info.st_mode)
        content = hashlib.md5(path.read_bytes()).hexdigest() if regular else ""
        target = str(path.readlink()) if path.is_symlink() else ""
        names = os.listxattr(path, follow_symlinks=False)
        attributes = tuple((n, os.getxattr(path, n, follow_symlinks=False)) for n in sorted(names))
        size = info.st_size if regular else 0
        same = first.setdefault(info.st_ino, name) if regular else ""
        owner = (info.st_uid, info.st_gid)
        found[name] = (
            info.st_mode, owner, size, info.st_mtime_ns, content, target, attributes, same,
        )  # fmt: skip
    return found


def test_a_tree_of_20_000_files_copied_in_compares_equal_after_a_remount(pair: Pair) -> None:
    source = pair.folder / "source"
    source.mkdir()
    make_tree(source)
    pair.meta = pair.folder / "roomy"
    pair.mkfs("-f", "--meta-size", "64M")
    mount = pair.mount()
    run("rsync", "-aHAX", f"{source}/", mount / "tree")
    mount.unmount()
    pair.assert_sound()
    mount = pair.mount()
    assert fingerprint(mount / "tree") == fingerprint(source)
    mount.unmount()


def test_sqlite_stays_whole_in_both_journal_modes(pair: Pair) -> None:
    mount = pair.mount()
    for mode in ("delete", "wal"):
        path = mount / f"{mode}.db"
        with sqlite3.connect(path) as database:
            assert database.execute(f"pragma journal_mode={mode}").fetchone() == (mode,)
            database.execute("create table t (k integer primary key, v blob)")
            for i in range(300):
                database.execute("insert into t values (?, ?)", (i, os.urandom(500)))
                database.commit()
            database.execute("delete from t where k % 3 = 0")
        database.close()
    mount.unmount()
    mount = pair.mount()
    for mode in ("delete", "wal"):
        database = sqlite3.connect(mount / f"{mode}.db")
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        assert database.execute("select count(*) from t").fetchone() == (200,)
        database.close()
