"""The two ways requests come from the kernel: /dev/fuse and io_uring."""

import ctypes
import errno
import platform
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TRANSPORTS = {"device": ["transport=dev"], "io_uring": ["transport=io_uring"]}  # mount options
SWITCH = Path("/sys/module/fuse/parameters/enable_uring")
DISABLED = Path("/proc/sys/kernel/io_uring_disabled")  # levels 0 to 2

# Waits for the end of its input, which comes at the latest when the test's process dies.
_GIVE_BACK = """trap "" INT TERM; read _; echo "$2" >"$1" """


@contextmanager
def kept(setting: Path) -> Iterator[None]:
    """Give a setting of the machine its value back, even if this process is killed."""
    words = ["sh", "-c", _GIVE_BACK, "sh", str(setting), setting.read_text().strip()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True):
        yield


@contextmanager
def io_uring_switched_on() -> Iterator[str]:
    """Switch it on in the kernel, and back to what it was; yield why that cannot be, or ""."""
    if not SWITCH.exists():
        yield "no io_uring transport: this kernel has no enable_uring (Linux 6.14)"
        return
    with kept(SWITCH):
        try:
            SWITCH.write_text("Y\n")
            refusal = ""
        except OSError as error:
            refusal = f"no io_uring transport: enable_uring cannot be set ({error.strerror})"
        yield refusal


@contextmanager
def allowing_io_uring() -> Iterator[None]:
    """Switch it on while the context lasts; skip the test where that cannot be."""
    with io_uring_switched_on() as refusal:
        if refusal:
            pytest.skip(refusal)
        yield


IO_URING_SETUP = 425
EVENTFD2 = {"x86_64": 290, "aarch64": 19}.get(platform.machine(), -1)
# struct sock_filter: load the system call's number; is it this one? then an error; else allowed.
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 6
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def refusing(call: int = IO_URING_SETUP, code: int = errno.EPERM) -> Callable[[], None]:
    """Return a function that makes the calling process fail ``call`` with ``code`` from then on."""
    instructions = (
        (_LOAD, 0, 0, 0),
        (_EQUAL, 0, 1, call),
        (_RETURN, 0, 0, _ERROR | code),
        (_RETURN, 0, 0, _ALLOW),
    )
    program = b"".join(struct.pack("<HBBI", *each) for each in instructions)

    def refuse() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        kept_program = ctypes.create_string_buffer(program)
        filters = struct.pack("<HxxxxxxQ", len(instructions), ctypes.addressof(kept_program))
        assert libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        assert libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_char_p(filters), 0, 0) == 0

    return refuse
