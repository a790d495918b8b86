"""Google Benchmark programs as sources of figures."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from bench.paths import BIN

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Measured:
    """A benchmark: medians over its repetitions."""

    name: str
    cpu_ns: float  # of one iteration, over all threads
    counters: dict[str, float]


def run(program: str, quick: bool) -> dict[str, Measured]:
    """Run a program's benchmarks in random interleaving; return their medians by name."""
    command = [
        str(BIN / program),
        "--benchmark_format=json",
        f"--benchmark_repetitions={3 if quick else 9}",
        f"--benchmark_min_time={0.05 if quick else 0.3}",
        "--benchmark_enable_random_interleaving=true",
        "--benchmark_report_aggregates_only=true",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    entries = json.loads(done.stdout)["benchmarks"]
    medians = (_measured(entry) for entry in entries if entry["aggregate_name"] == "median")
    return {measured.name: measured for measured in medians}


def _measured(entry: dict[str, Any]) -> Measured:
    scale = NANOSECONDS[entry["time_unit"]]
    known = {"cpu_time", "real_time", "iterations", "threads", "repetitions", "family_index"}
    known |= {"per_family_instance_index"}
    counters = {k: v for k, v in entry.items() if isinstance(v, int | float) and k not in known}
    name = str(entry["run_name"])
    return Measured(name, entry["cpu_time"] * scale, counters)
