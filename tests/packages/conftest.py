"""Prints the installed sizes of the packages at the end."""

import pytest

# By suite and package, KiB.
SIZES = pytest.StashKey[dict[str, dict[str, int]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no sizes."""
    config.stash[SIZES] = {}


@pytest.fixture(scope="session")
def sizes(request: pytest.FixtureRequest) -> dict[str, dict[str, int]]:
    """Installed sizes by suite and package, KiB."""
    return request.config.stash[SIZES]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print a table: a row for each package, a column for each suite."""
    found = config.stash[SIZES]
    if not found:
        return
    terminalreporter.section("installed sizes, KiB")
    rows = dict.fromkeys(name for packages in found.values() for name in packages)
    terminalreporter.line(f"{'':26}" + "".join(f"{suite:>12}" for suite in found))
    for name in rows:
        columns = (f"{packages.get(name, 0):12,}" for packages in found.values())
        terminalreporter.line(f"{name:26}" + "".join(columns))
