"""The requests of signals to a program that waits: to end, or to begin again.

A handler runs within whatever the main thread is doing, so it must take no lock which that may
hold: threading.Event does. Here it sets a flag and writes to a pipe, and the wait looks at both.
The interpreter writes to the pipe as well (signal.set_wakeup_fd): a signal that comes just before
the wait begins has not reached its handler yet.
"""

from __future__ import annotations

import os
import select
import signal
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress


class Wishes:
    """Anyone may wish, signal handlers and other threads; one thread waits."""

    def __init__(self) -> None:
        self.end = self.again = False
        self._hears, self._tells = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        weakref.finalize(self, _close, self._hears, self._tells)

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return self.end or self.again

    def ask_end(self) -> None:
        """Wish for the end."""
        self.end = True
        self._wake()

    def ask_again(self) -> None:
        """Wish for a new beginning; whoever grants it clears `again` first."""
        self.again = True
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # full: it wakes without this byte
            os.write(self._tells, b"\0")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until something is wished for, or so long; whether that is the end."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.any:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._hears], [], [], left)[0]:
                break
            os.read(self._hears, 4096)
        return self.end

    def hear(self, handlers: Mapping[int, Callable[[], None]]) -> None:
        """From now on signals do what is given for each. For the main thread."""
        signal.set_wakeup_fd(self._tells, warn_on_full_buffer=False)
        for number, handler in handlers.items():
            signal.signal(number, lambda *_, handler=handler: handler())


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)
