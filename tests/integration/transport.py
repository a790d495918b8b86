"""The two ways requests come from the kernel: /dev/fuse and io_uring."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TRANSPORTS = {"device": [], "io_uring": ["io_uring"]}  # mount options
_SWITCH = Path("/sys/module/fuse/parameters/enable_uring")


@contextmanager
def allowing_io_uring() -> Iterator[None]:
    """Switch it on in the kernel, and back to what it was; skip where that cannot be."""
    if not _SWITCH.exists():
        pytest.skip("no io_uring transport: this kernel has no enable_uring (Linux 6.14)")
    before = _SWITCH.read_text()
    try:
        _SWITCH.write_text("Y\n")
    except OSError as error:
        pytest.skip(f"no io_uring transport: enable_uring cannot be set ({error.strerror})")
    try:
        yield
    finally:
        _SWITCH.write_text(before)
