"""libstream: a program says which of its data will die together.

A thin layer over libstream.so (libstream.h has the contract). Files are given as a path, a file
descriptor, or anything with ``fileno()``. Whatever sets a label returns an :class:`Outcome` and
never raises for what a mount, or its absence, says; makers of a :class:`VStream` raise ValueError
for what cannot be one.

    >>> with open("orders.log", "ab") as file:
    ...     libstream.VStream.named("orders").tag(file)

Any thread. ``LIBSTREAM`` in the environment names another libstream.so.
"""

from __future__ import annotations

import ctypes
import enum
import errno
import os
from dataclasses import dataclass
from typing import Any, Protocol, Union

__all__ = [
    "Device",
    "Info",
    "Life",
    "Outcome",
    "VStream",
    "clear",
    "clear_directory",
    "device",
    "hint",
    "query",
    "version",
]

_NAME_BYTES = 32


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


File = Union[int, str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", _HasFileno]


class _VStream(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint32), ("name", ctypes.c_char * _NAME_BYTES)]


class _Info(ctypes.Structure):
    _fields_ = [
        ("vstream", ctypes.c_uint32),
        ("pstream", ctypes.c_uint32),
        ("life", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("lifetime_bytes", ctypes.c_uint64),
        ("name", ctypes.c_char * _NAME_BYTES),
    ]


class _Device(ctypes.Structure):
    _fields_ = [
        ("pstreams", ctypes.c_uint32),
        ("takes_labels", ctypes.c_uint32),
        ("mechanism", ctypes.c_char * _NAME_BYTES),
    ]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("LIBSTREAM", "libstream.so.0"))
    library.stream_version.restype = ctypes.c_char_p
    for name in ("stream_open_bytes", "stream_open_seconds"):
        getattr(library, name).argtypes = [ctypes.POINTER(_VStream), ctypes.c_uint64]
    return library


_library = _load()


class Life(enum.IntEnum):
    """Expected lifetimes for who has no better name for the data: RWH_WRITE_LIFE_*."""

    NOT_SET = 0
    NONE = 1
    SHORT = 2
    MEDIUM = 3
    LONG = 4
    EXTREME = 5


@dataclass(frozen=True)
class Outcome:
    """How a call ended; true where the filesystem took it."""

    code: int

    def __bool__(self) -> bool:
        """Whether the label or hint is in force."""
        return self.code == 0

    @property
    def not_streamfs(self) -> bool:
        """Whether nothing was done, for the file is not on a streamfs mount."""
        return self.code == 1

    @property
    def passed_on(self) -> bool:
        """Whether the kernel has the hint of a device without streamfs."""
        return self.code == 2

    @property
    def errno(self) -> int:
        """Why it could not be done, 0 otherwise."""
        return max(0, -self.code)


@dataclass(frozen=True)
class Info:
    """A mount's knowledge of a file's vStream; ``lifetime_bytes`` 0: not measured yet."""

    vstream: int
    pstream: int
    life: Life
    lifetime_bytes: int
    name: str


@dataclass(frozen=True)
class Device:
    """How the device under a mount honours labels."""

    pstreams: int
    takes_labels: bool
    mechanism: str


def _call(name: str, file: File, *rest: Any) -> int:
    """Call stream_<name>_fd or stream_<name>_path, whichever fits the file."""
    if isinstance(file, (str, bytes, os.PathLike)):
        code = getattr(_library, f"stream_{name}_path")(os.fsencode(file), *rest)
    else:
        fd = file if isinstance(file, int) else file.fileno()
        code = getattr(_library, f"stream_{name}_fd")(fd, *rest)
    return int(code)


def _raise_for(code: int) -> None:
    """Questions have an answer or an exception; None stands for "not on streamfs"."""
    if code < 0:
        raise OSError(-code, os.strerror(-code))


def _info(code: int, raw: _Info) -> Info | None:
    _raise_for(code)
    if code != 0:
        return None
    name = raw.name.decode("utf-8", "surrogateescape")
    return Info(raw.vstream, raw.pstream, Life(raw.life), raw.lifetime_bytes, name)


class VStream:
    """A label on data with one expected lifetime. Holds no resource and belongs to no mount."""

    def __init__(self, raw: _VStream) -> None:
        self._raw = raw

    @classmethod
    def _made(cls, function: str, value: Any) -> VStream:
        raw = _VStream()
        code = getattr(_library, function)(ctypes.byref(raw), value)
        if code < 0:
            message = f"no vStream can be {value!r}: {os.strerror(-code)}"
            raise ValueError(message)
        return cls(raw)

    @classmethod
    def named(cls, name: str) -> VStream:
        """Return the vStream of that name: 1 to 31 bytes, no '/', not only digits."""
        encoded = name.encode("utf-8", "surrogateescape")
        if b"\0" in encoded:
            message = f"no vStream can be {name!r}: {os.strerror(errno.EINVAL)}"
            raise ValueError(message)
        return cls._made("stream_open", encoded)

    @classmethod
    def numbered(cls, number: int) -> VStream:
        """Return the vStream of that number, 1 to 65535."""
        return cls._made("stream_open_number", number if 0 < number <= 0xFFFF else 0)

    @classmethod
    def for_bytes(cls, count: int) -> VStream:
        """Return the one for data that lives until so many bytes more have been written."""
        return cls._made("stream_open_bytes", count if 0 < count < 1 << 64 else 0)

    @classmethod
    def for_seconds(cls, count: int) -> VStream:
        """Return the one for data that lives about so many seconds."""
        return cls._made("stream_open_seconds", count if 0 < count < 1 << 64 else 0)

    @property
    def name(self) -> str:
        """The name, "" for a vStream known by its number."""
        name: bytes = self._raw.name
        return name.decode("utf-8", "surrogateescape")

    def tag(self, file: File) -> Outcome:
        """Label a regular file: writes from now on belong to this vStream."""
        return Outcome(_call("tag", file, ctypes.byref(self._raw)))

    def tag_directory(self, path: str | os.PathLike[str]) -> Outcome:
        """Label a directory: what is made in it from now on inherits the label."""
        stream = ctypes.byref(self._raw)
        return Outcome(int(_library.stream_tag_directory(os.fsencode(path), stream)))

    def tag_tree(self, path: str | os.PathLike[str]) -> tuple[Outcome, int]:
        """Label a directory and what is below it already; also returns how many were labelled."""
        labelled = ctypes.c_uint64()
        arguments = os.fsencode(path), ctypes.byref(self._raw), ctypes.byref(labelled)
        return Outcome(int(_library.stream_tag_tree(*arguments))), labelled.value

    def measure(self, file: File) -> Info | None:
        """Describe this vStream on the mount of a file; None: no streamfs; ENOENT: no such."""
        raw = _Info()
        return _info(_call("measure", file, ctypes.byref(self._raw), ctypes.byref(raw)), raw)


def hint(file: File, life: Life) -> Outcome:
    """Give a regular file, or by its descriptor a block device, a general lifetime."""
    return Outcome(_call("hint", file, int(life)))


def clear(file: File) -> Outcome:
    """Take labels and hints of a file back."""
    return Outcome(_call("clear", file))


def clear_directory(path: str | os.PathLike[str]) -> Outcome:
    """Take a directory's label back."""
    return Outcome(int(_library.stream_clear_directory(os.fsencode(path))))


def query(file: File) -> Info | None:
    """Describe a file's vStream; None off a streamfs mount. OSError: it could not be asked."""
    raw = _Info()
    return _info(_call("query", file, ctypes.byref(raw)), raw)


def device(file: File) -> Device | None:
    """Describe the device under a file; None off a streamfs mount."""
    raw = _Device()
    code = _call("device", file, ctypes.byref(raw))
    _raise_for(code)
    if code != 0:
        return None
    return Device(raw.pstreams, bool(raw.takes_labels), raw.mechanism.decode())


def version() -> str:
    """Version of the libstream.so that was loaded."""
    text: bytes = _library.stream_version()
    return text.decode()
