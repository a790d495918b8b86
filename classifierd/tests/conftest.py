"""Fixtures: a telemetry ring, a model area and a filesystem made of them."""

from __future__ import annotations

import os

# As in cli.py, before numpy and scikit-learn start threads: waiting threads cost time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_filesystem import FakeFilesystem, ModelArea, Ring


@pytest.fixture
def ring() -> Iterator[Ring]:
    area = Ring()
    yield area
    area.close()


@pytest.fixture
def model() -> Iterator[ModelArea]:
    area = ModelArea()
    yield area
    area.close()


@pytest.fixture
def filesystem(
    tmp_path: Path, ring: Ring, model: ModelArea, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeFilesystem]:
    """A fake filesystem that is found at any mount point given."""
    fs = FakeFilesystem(tmp_path / "control", ring, model)
    monkeypatch.setattr("classifierd.control.os.getxattr", lambda *_: bytes(fs.path))
    yield fs
    fs.close()
