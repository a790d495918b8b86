"""A filesystem for a conformance run: made, mounted, taken down again, and then checked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.integration.pairs import Mount, Pair
from tests.integration.transport import SWITCH, kept


@contextmanager
def transports() -> Iterator[list[str]]:
    """Give mount options, one for each transport of requests that this kernel offers."""
    with kept(SWITCH) if SWITCH.exists() else nullcontext():
        try:
            SWITCH.write_text("Y\n")
        except OSError as error:
            print(f"transport=io_uring: not offered here ({error.strerror})")
            yield ["transport=dev"]
            return
        yield ["transport=dev", "transport=io_uring"]


@contextmanager
def sound_mount(
    folder: Path, options: Sequence[str] = (), mkfs: Sequence[str] = (), size: str = "1G"
) -> Iterator[Mount]:
    """Give a mount under `folder`; fsck must find nothing after it.

    Unmounts whatever happens. Raises AssertionError with what fsck says.
    """
    pair = Pair(folder, size)
    try:
        pair.mkfs(*mkfs)
        mount = pair.mount(*options)
        yield mount
        mount.unmount()
        pair.assert_sound()
    finally:
        pair.end()
