"""Progress of long work: every 10 s one line on standard error, in ssd-sim's form.

"classifierd: replay of hot-cold, learning, 40 % after 20 s". Native code that takes long releases
the interpreter's lock, so that the line is printed while it runs.

Thread safety: step() and reached() are for the thread that works; a thread of its own prints.
"""

from __future__ import annotations

import logging
import threading
from types import TracebackType

log = logging.getLogger(__name__)

_EVERY_SECONDS = 10.0


class Progress:
    """Reports on one piece of work while its `with` block runs."""

    def __init__(self, work: str, every_seconds: float | None = None) -> None:
        self._work = work
        self._every_seconds = _EVERY_SECONDS if every_seconds is None else every_seconds
        self._at: tuple[str, int | None] = ("", None)  # one assignment: always of one step
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Progress:
        """Begin to count the seconds."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Print no more."""
        self._over.set()
        self._thread.join()

    def step(self, name: str) -> None:
        """Name the step that begins now."""
        self._at = (name, None)

    def reached(self, done: int, of: int) -> None:
        """Tell how much of the step is done."""
        self._at = (self._at[0], 100 * done // max(of, 1))

    def _report(self) -> None:
        lines = 0
        while not self._over.wait(self._every_seconds):
            lines += 1
            name, percent = self._at
            told = [self._work, *([name] if name else [])]
            share = "" if percent is None else f"{percent} % after "
            log.info("%s, %s%d s", ", ".join(told), share, round(lines * self._every_seconds))
