"""The compiled helpers, and a fake mount of one's own for each test."""

from pathlib import Path

import pytest
from tests.integration.libstream.harness import HELPERS, FakeMount, compile_c


@pytest.fixture(scope="session")
def helpers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the compiled helper programs."""
    folder = tmp_path_factory.mktemp("libstream")
    compile_c(folder / "entry_points", HELPERS / "entry_points.c")
    compile_c(folder / "processes", HELPERS / "processes.c", "-pthread")
    compile_c(folder / "fake.so", HELPERS / "fake_streamfs.c", "-shared", "-fPIC")
    return folder


@pytest.fixture
def mount(helpers: Path, tmp_path: Path) -> FakeMount:
    return FakeMount(helpers, tmp_path)
