"""Settings from a TOML file: [learner] and [daemon]; unknown keys are refused, by name."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from classifierd import _core
from classifierd.clusters import CHUNK_CLASSES
from classifierd.contest import CANDIDATES
from classifierd.errors import sentence
from classifierd.learner import Settings


class ConfigError(ValueError):
    """A configuration that cannot be used, with a sentence why."""


class _MistakeError(ConfigError):
    """A mistake in a section, at a key if that is known."""

    def __init__(self, sentence: str, section: str, key: str = "") -> None:
        super().__init__(sentence)
        self.section, self.key = section, key


@dataclass(frozen=True)
class DaemonSettings:
    """How the daemon runs."""

    poll_ms: int = 50
    retry_ms: int = 1000
    chunk_classes: int = CHUNK_CLASSES
    save_seconds: int = 60
    candidates: tuple[str, ...] = CANDIDATES  # of contest.py

    def __post_init__(self) -> None:
        """Raise ConfigError for what cannot be."""
        if not self.candidates or set(self.candidates) - set(CANDIDATES):
            msg = f"candidates are some of {', '.join(CANDIDATES)}"
            raise ConfigError(msg)
        if min(self.poll_ms, self.retry_ms, self.chunk_classes, self.save_seconds) < 1:
            msg = "all of [daemon] are at least 1"
            raise ConfigError(msg)
        if self.chunk_classes >= _core.CHUNK_CLASSES:
            msg = f"chunk_classes is at most {_core.CHUNK_CLASSES - 1}"
            raise ConfigError(msg)


@dataclass(frozen=True)
class Config:
    """Everything a run needs to know beside the mount point."""

    learner: Settings = Settings()  # noqa: RUF009  (frozen)
    daemon: DaemonSettings = DaemonSettings()


_T = TypeVar("_T", Settings, DaemonSettings)


def _section(defaults: _T, values: object, name: str) -> _T:
    if not isinstance(values, dict):
        msg = f"[{name}] is no table"
        raise _MistakeError(msg, name)
    types = {f.name: type(getattr(defaults, f.name)) for f in fields(defaults)}
    changes: dict[str, Any] = {}
    for key, given in values.items():
        wanted, value = types.get(key), given
        if wanted is tuple and isinstance(given, list):
            value = tuple(str(item) for item in given)
        if wanted is float and isinstance(given, int) and not isinstance(given, bool):
            value = float(given)
        if wanted is None or type(value) is not wanted:
            msg = f"[{name}] {key}: unknown, or of the wrong type"
            raise _MistakeError(msg, name, key)
        changes[key] = value
    try:
        return replace(defaults, **changes)
    except ValueError as error:
        msg = f"[{name}]: {error}"
        raise _MistakeError(msg, name) from error


def _line_of(text: str, section: str, key: str) -> int:
    """Where a key of a section is, or the section; counted from 1."""
    header, inside = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"\s*\[\s*([\w-]+)", line)
        if opened is not None:
            inside = opened[1] == section
            header = number if inside else header
        elif inside and re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", line):
            return number
        elif not header and re.match(rf"\s*{re.escape(section)}\b", line):
            header = number
    return max(header, 1)


def read(path: Path | None) -> Config:
    """Read a configuration; the defaults where there is none. Raises ConfigError."""
    if path is None:
        return Config()
    try:
        text = path.read_text()
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = sentence(error) if isinstance(error, OSError) else f"{path}: {sentence(error)}"
        raise ConfigError(msg) from error
    try:
        for unknown in sorted(data.keys() - {"learner", "daemon"}):
            msg = f"unknown section [{unknown}]"
            raise _MistakeError(msg, unknown)
        return Config(
            _section(Settings(), data.get("learner", {}), "learner"),
            _section(DaemonSettings(), data.get("daemon", {}), "daemon"),
        )
    except _MistakeError as error:
        msg = f"{path}:{_line_of(text, error.section, error.key)}: {error}"
        raise ConfigError(msg) from error
