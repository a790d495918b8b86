"""Runs commands in the guest for the host: a line of JSON each, asked and answered over a port.

Requests: {"words": [...], "seconds": N, "input": TEXT} waits for the command; {"start": [...],
"notes": PORT} leaves it running with the port as its standard output; {"off": true} ends the guest.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

TRIES = 100
STARTED = Path("/tmp/started")  # errors of the programs that were left running


def port(name: str) -> Path:
    """The device of the port that the host gave this name."""
    for _ in range(TRIES):
        for place in Path("/sys/class/virtio-ports").iterdir():
            if (place / "name").read_text().strip() == name:
                return Path("/dev") / place.name
        time.sleep(0.1)
    sys.exit(f"no port {name}")


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a command to its end."""
    try:
        done = subprocess.run(
            asked["words"],
            input=asked["input"].encode(),
            capture_output=True,
            timeout=asked["seconds"],
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        out = (late.stdout or b"") + (late.stderr or b"")
        return {"code": 124, "out": out.decode(errors="replace"), "err": "it took too long"}
    except OSError as error:
        return {"code": 127, "out": "", "err": str(error)}
    return {
        "code": done.returncode,
        "out": done.stdout.decode(errors="replace"),
        "err": done.stderr.decode(errors="replace"),
    }


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """Leave a command running."""
    with (
        port(asked["notes"]).open("wb", buffering=0) as notes,
        STARTED.open("ab") as log,
    ):
        process = subprocess.Popen(
            asked["start"], stdin=subprocess.DEVNULL, stdout=notes, stderr=log
        )
    return {"process": process.pid}


def serve(host: BinaryIO) -> None:
    """Answer until the host has had enough."""
    for line in host:
        asked = json.loads(line)
        if "off" in asked:
            return
        answer = start(asked) if "start" in asked else run(asked)
        host.write(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Say what the guest is, then serve."""
    with port("agent").open("r+b", buffering=0) as host:
        hello = {"kernel": Path("/proc/version").read_text()}
        host.write(json.dumps(hello).encode() + b"\n")
        serve(host)


main()
