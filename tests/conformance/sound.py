"""A filesystem for a conformance run: made, mounted, taken down again, and then checked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integration.pairs import Mount, Pair
from tests.integration.transport import SWITCH, kept


def transports() -> Iterator[str]:
    """Yield mount options: one for each transport of requests that this kernel offers."""
    yield "transport=dev"
    if not SWITCH.exists():
        print("transport=io_uring: not offered by this kernel")
        return
    with kept(SWITCH):
        SWITCH.write_text("Y\n")
        yield "transport=io_uring"


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
