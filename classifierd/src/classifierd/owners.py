"""The owners of written pages: streamfs's knowledge of a file, for another file system.

A stock kernel tells where ext4 puts each file (ext4_allocate_blocks); the file's name is asked for
by its inode, at once, while it still has one. Files that were there before are walked through; of
other file systems only those are known. As on streamfs a name counts by its extension and its
directory, folded.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from classifierd.contexts import VSTREAMS, VStream
from classifierd.records import BLOCK_BYTES, Ints

EVENT = "ext4/ext4_allocate_blocks"
NOBODY, LOG = 0, 1  # contexts that are no file's
_FIRST = 2
_LINE = re.compile(
    r": ext4_allocate_blocks: dev \d+,\d+ ino (?P<inode>\d+) flags (?P<flags>\S*) "
    r"len (?P<blocks>\d+) block (?P<block>\d+) "
)
_EXTENSION_MAX = 16  # fuse-fs/placement/context.cc
_UNFIT = re.compile(r'[\x00-\x20\x7f:~,"\ud800-\udfff]')  # the last: bytes that are no UTF-8
_GONE = " (deleted)"
# linux/fiemap.h: start, length, flags, extents told, extents there is room for.
_FIEMAP = 0xC020660B
_HEAD = struct.Struct("<QQIII4x")
_EXTENT = np.dtype(
    [
        ("logical", "<u8"),
        ("physical", "<u8"),
        ("length", "<u8"),
        ("reserved", "<u8", (2,)),
        ("flags", "<u4"),
        ("reserved2", "<u4", (3,)),
    ]
)
_EXTENTS_AT_ONCE = 512
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK
_LAST, _NOWHERE = 0x1, 0x2 | 0x4 | 0x200  # not known yet, not written yet; data beside the inode


def fold_extension(name: str) -> str:
    """The part after the last dot; "#" for a number."""
    if name.isascii() and name.isdigit():
        return "#"
    stem, dot, ext = name.rpartition(".")
    if not dot or not stem or len(os.fsencode(ext)) > _EXTENSION_MAX:
        return ""
    return "#" if ext.isascii() and ext.isdigit() else _UNFIT.sub("_", ext)


def fold_directory(name: str) -> str:
    """Digits become one "#"."""
    return re.sub("[0-9]+", "#", _UNFIT.sub("_", name))


class Names:
    """Paths of inodes of a mounted ext4. Not thread-safe; close() it."""

    def __init__(self, mount: Path) -> None:
        self._root = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
        self._mount = os.fspath(mount)
        self._open = ctypes.CDLL(None, use_errno=True).open_by_handle_at

    def close(self) -> None:
        """Ask no more."""
        os.close(self._root)

    def of(self, inode: int) -> str:
        """Its path below the mount; empty where it has none, as what is deleted may not."""
        # struct file_handle of FILEID_INO32_GEN; ext4 takes generation 0 for any.
        handle = struct.pack("<IiII", 8, 1, inode, 0)
        found = self._open(self._root, handle, os.O_PATH)
        if found < 0:
            return ""
        try:
            path = os.fspath(Path(f"/proc/self/fd/{found}").readlink())
        except OSError:
            return ""
        finally:
            os.close(found)
        inside = path.removesuffix(_GONE).removeprefix(self._mount)
        return inside if len(inside) < len(path) or self._mount == "/" else ""


class Owners:
    """Which context each page of a device belongs to. Not thread-safe.

    Contexts are (extension, directory); those behind the 65,535th are nobody's.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._of = np.zeros(-(-capacity_bytes // BLOCK_BYTES), np.uint16)  # not touched, no memory
        self.names: dict[tuple[str, str], int] = {}

    def context(self, path: str) -> int:
        """The number of a path's context, below the mount."""
        directory, _, name = path.rpartition("/")
        if not name:
            return NOBODY
        key = (fold_extension(name), fold_directory(directory.rpartition("/")[2]))
        if key not in self.names and _FIRST + len(self.names) >= VSTREAMS:
            return NOBODY
        return self.names.setdefault(key, _FIRST + len(self.names))

    def place(self, first_byte: int, length: int, context: int) -> None:
        """Let them belong to it from now on."""
        self._of[first_byte // BLOCK_BYTES : -(-(first_byte + length) // BLOCK_BYTES)] = context

    def parts(self, offset: int, length: int) -> Iterator[tuple[int, int, int]]:
        """Offset, bytes and context of each part of a request that is another's than the last."""
        first = offset // BLOCK_BYTES
        of = self._of[first : -(-(offset + length) // BLOCK_BYTES)]
        edges = [first + int(edge) + 1 for edge in np.flatnonzero(of[1:] != of[:-1])]
        begins = [offset, *(edge * BLOCK_BYTES for edge in edges)]
        for begin, end in zip(begins, [*begins[1:], offset + length], strict=True):
            at = begin // BLOCK_BYTES - first
            yield begin, end - begin, int(of[at]) if at < len(of) else NOBODY

    def take(self, line: str, names: Names, block_bytes: int) -> bool:
        """Whether a line of trace_pipe tells of an allocation; it is looked into."""
        found = _LINE.search(line)
        if found is None:
            return False
        # A write that is not data is of the file's extent tree, which is metadata.
        context = NOBODY
        if "HINT_DATA" in found["flags"]:
            context = self.context(names.of(int(found["inode"])))
        block, blocks = int(found["block"]), int(found["blocks"])
        self.place(block * block_bytes, blocks * block_bytes, context)
        return True

    def walk(self, mount: Path, stopped: Callable[[], bool] = lambda: False) -> int:
        """Look at the files that are there, as far as one may; returns how many.

        Others may change the tree meanwhile: no link is followed, and nothing looked into that is
        another device's.
        """
        root = os.open(mount, _FOLDER)
        try:
            device, looked = os.fstat(root).st_dev, 0
            todo: list[tuple[str, ...]] = [()]
            while todo and not stopped():
                parts = todo.pop()
                folder = _folder(root, parts, device)
                if folder is None:
                    continue
                try:
                    folders, files = _names(folder)
                    todo += [(*parts, each) for each in folders]
                    for name in files:
                        looked += self._look("/".join(("", *parts, name)), name, folder, device)
                finally:
                    os.close(folder)
            return looked
        finally:
            os.close(root)

    def _look(self, path: str, name: str, folder: int, device: int) -> int:
        extents = _extents(name, folder, device)
        if extents is None:
            return 0
        context = self.context(path)
        for first, length in extents.tolist():
            self.place(first, length, context)
        return 1


def vstreams(names: dict[tuple[str, str], int]) -> list[VStream]:
    """As streamfs would have them, but for the program's name; and that of what is nobody's."""
    known = [VStream(number, "context", ext=ext, dir=at) for (ext, at), number in names.items()]
    return [VStream(NOBODY), *known]


def _folder(root: int, parts: tuple[str, ...], device: int) -> int | None:
    """Open a folder below another one; None: it is none any more, or another device's."""
    fd = os.dup(root)
    try:
        for part in parts:
            above, fd = fd, os.open(part, _FOLDER, dir_fd=fd)
            os.close(above)
        if os.fstat(fd).st_dev == device:
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _names(folder: int) -> tuple[list[str], list[str]]:
    """The folders and the files in it, as far as it can be read."""
    folders, files = list[str](), list[str]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
    return folders, files


def _extents(name: str, folder: int, device: int) -> Ints | None:
    """Where a file lies, i64[extents, 2]: first byte, bytes; None where nobody says."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        what = os.fstat(file)
        if not stat.S_ISREG(what.st_mode) or what.st_dev != device or what.st_blocks == 0:
            return None
        out, at = [np.zeros((0, 2), np.int64)], 0
        while True:
            room = bytes(_EXTENTS_AT_ONCE * _EXTENT.itemsize)
            answer = bytearray(_HEAD.pack(at, 2**63 - 1, 0, 0, _EXTENTS_AT_ONCE) + room)
            fcntl.ioctl(file, _FIEMAP, answer)
            told = np.frombuffer(answer, _EXTENT, _HEAD.unpack_from(answer)[3], _HEAD.size)
            here = told[(told["flags"] & _NOWHERE) == 0]
            out.append(np.column_stack([here["physical"], here["length"]]).astype(np.int64))
            if len(told) == 0 or told["flags"][-1] & _LAST:
                return np.concatenate(out)
            at = int(told["logical"][-1] + told["length"][-1])
    except OSError:
        return None
    finally:
        os.close(file)
