"""ssd-sim as a source of figures."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any

from bench.paths import BIN

PAGE_BYTES = 4096


@dataclass(frozen=True)
class Run:
    """A simulated run, and what simulating it cost."""

    figures: dict[str, Any]
    cpu_seconds: float
    memory_bytes: int  # the most it had resident

    @property
    def waf(self) -> float:
        """NAND pages ÷ host pages."""
        return float(self.figures["waf"])


def run(*arguments: str | float) -> Run:
    """Run ssd-sim with ``--json``; CalledProcessError if it fails."""
    command = [str(BIN / "ssd-sim"), *map(str, arguments), "--json"]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        output.seek(0)
        figures = json.load(output)
    return Run(figures, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def formula(name: str, alpha: float, **options: float) -> float:
    """Return write amplification in closed form (lab/formulas/waf.h)."""
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    figures = run("model", name, "--alpha", alpha, *words).figures
    return float(figures["waf"])
