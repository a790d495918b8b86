"""The command lines of classifierd and of streamfs-lab: exit codes, options, the log."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from classifierd import config as configuration
from classifierd.errors import sentence

# The same values as in base/exit_codes.h.
EXIT_USAGE, EXIT_NO_DEVICE, EXIT_IO, EXIT_BUSY = 64, 66, 70, 75

# The same value as in base/wire/control.h.
JSON_SCHEMA = 1

log = logging.getLogger(__name__)

# (lowest level of `logging`, its level in syslog), the highest first.
_JOURNAL_LEVELS = (
    (logging.CRITICAL, 2),
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
    (0, 7),
)


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors exit with EXIT_USAGE."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Print the usage and the error, and exit."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def between(low: int, high: int) -> Callable[[str], int]:
    """Return an argparse type: an integer from `low` to `high`."""

    def integer(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            msg = f"between {low} and {high}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return integer


def add_learner_options(command: argparse.ArgumentParser) -> None:
    """Add --config and --epoch-pages, which config_of() reads."""
    command.add_argument(
        "--config", type=Path, metavar="FILE.toml", help="read the settings of this file"
    )
    command.add_argument(
        "--epoch-pages",
        type=between(1, 1 << 24),
        metavar="N",
        help="learn after every N pages written, 1 to 16777216 (default: a sixteenth of the "
        "device, 8192 to 65536)",
    )


def config_of(args: argparse.Namespace) -> configuration.Config:
    """Return the configuration that the options name. Raises ConfigError."""
    found = configuration.read(args.config)
    if args.epoch_pages is None:
        return found
    return replace(found, learner=replace(found.learner, epoch_pages=args.epoch_pages))


class _WithLevels(logging.Formatter):
    """Puts the syslog level before each line, so that the journal files it (sd-daemon(3))."""

    def format(self, record: logging.LogRecord) -> str:
        """Prefix each line."""
        level = next(n for least, n in _JOURNAL_LEVELS if record.levelno >= least)
        return "\n".join(f"<{level}>{line}" for line in super().format(record).splitlines())


def _is_journal(stream: TextIO) -> bool:
    """Whether this stream goes to the journal, which systemd names in JOURNAL_STREAM."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def begin_log(program: str, *, verbose: bool) -> None:
    """Send the log to standard error, each line with the program's name before it."""
    handler = logging.StreamHandler()
    kind = _WithLevels if _is_journal(sys.stderr) else logging.Formatter
    handler.setFormatter(kind(f"{program.replace('%', '%%')}: %(message)s"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])


def run(command: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command; returns its exit code, EXIT_USAGE for a configuration with a mistake."""
    try:
        return command(args)
    except BrokenPipeError:  # `| head` is no error; nothing more can be printed.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 0
    except configuration.ConfigError as error:
        log.error("%s", sentence(error))
        return EXIT_USAGE
