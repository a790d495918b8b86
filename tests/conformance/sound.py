"""A filesystem for a conformance run: made, mounted, taken down again, and then checked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integration.pairs import Mount, Pair
from tests.integration.transport import io_uring_switched_on


@contextmanager
def transports() -> Iterator[list[str]]:
    """Give mount options, one for each transport of requests that this kernel offers."""
    with io_uring_switched_on() as refusal:
        if refusal:
            print(refusal)
        yield ["transport=dev"] if refusal else ["transport=dev", "transport=io_uring"]


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
