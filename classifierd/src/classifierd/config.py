"""Settings from a TOML file: [learner] and [daemon]; unknown keys are refused, by name."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from classifierd.contest import CANDIDATES, PUBLISHED
from classifierd.learner import Settings


class ConfigError(ValueError):
    """A configuration that cannot be used, with a sentence why."""


@dataclass(frozen=True)
class DaemonSettings:
    """How the daemon runs."""

    poll_ms: int = 50
    retry_ms: int = 1000
    chunk_classes: int = 4
    save_seconds: int = 60
    candidates: tuple[str, ...] = PUBLISHED  # who competes (contest.py), the first serves first

    def __post_init__(self) -> None:
        """Raise ConfigError for what cannot be."""
        if not self.candidates or set(self.candidates) - set(CANDIDATES):
            msg = f"candidates are some of {', '.join(CANDIDATES)}"
            raise ConfigError(msg)
        if min(self.poll_ms, self.retry_ms, self.chunk_classes, self.save_seconds) < 1:
            msg = "all of [daemon] are at least 1"
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
        raise ConfigError(msg)
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
            raise ConfigError(msg)
        changes[key] = value
    try:
        return replace(defaults, **changes)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def read(path: Path | None) -> Config:
    """Read a configuration; the defaults where there is none. Raises ConfigError."""
    if path is None:
        return Config()
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"{path}: {error}"
        raise ConfigError(msg) from error
    unknown = data.keys() - {"learner", "daemon"}
    if unknown:
        msg = f"{path}: unknown sections {sorted(unknown)}"
        raise ConfigError(msg)
    return Config(
        _section(Settings(), data.get("learner", {}), "learner"),
        _section(DaemonSettings(), data.get("daemon", {}), "daemon"),
    )
