"""Two servers of the test set: MariaDB under sysbench, etcd under puts.

Neither is part of the demo: their packages come with ``scripts/setup --bench`` only.
"""

import base64
import http.client
import json
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.programs.place import Place, ProgramError
from bench.programs.plan import EtcdPlan, MariaDbPlan

# Debian puts servers where an ordinary user's PATH does not lead.
_SERVER_FOLDERS = "/usr/sbin:/usr/local/sbin"
_GET_IT = "not installed: {}; run scripts/setup --bench"


def program(name: str) -> str:
    """Return where a program is; ProgramError says how to get it."""
    if found := _find(name):
        return found
    raise ProgramError(_GET_IT.format(name))


def not_installed(programs: Sequence[str]) -> str | None:
    """Say which programs are not there, and how to get them; None if all are."""
    missing = [name for name in programs if _find(name) is None]
    return _GET_IT.format(", ".join(missing)) if missing else None


def _find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_SERVER_FOLDERS)


class MariaDb:
    """sysbench's OLTP against an InnoDB of its own in the mount.

    Redo log, doublewrite and direct I/O are Debian's defaults. The buffer pool is smaller than the
    tables, as it is in life, so that pages are written back all the time.
    """

    name = "mariadb"
    programs = ("mariadbd", "mariadb-install-db", "mariadb", "sysbench")

    def __init__(self, place: Place, plan: MariaDbPlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed
        self.server: subprocess.Popen[bytes] | None = None
        self.folder = place.scratch / "mariadb"
        self.socket = self.folder / "socket"

    def prepare(self) -> None:
        """Make the data, start the server and fill the tables."""
        self.folder.mkdir()
        self.place.own(self.folder)
        data = self.place.folder("mariadb") / "data"
        made = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        self._run("mariadb-install-db", "--no-defaults", f"--datadir={data}", *made)
        options = [
            "--no-defaults",
            f"--datadir={data}",
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'pid'}",
            "--skip-networking",
            f"--innodb-buffer-pool-size={self.plan.buffer_pool_mib}M",
        ]
        self.server = self.place.start(None, [program("mariadbd"), *options])
        _wait_ready(self.server, self._answers, self.place.log)
        self._run("mariadb", *self._where(), "-e", "create database bench")
        self._sysbench("oltp_write_only", "prepare")

    def round(self, number: int) -> None:
        """Run the round's transactions, every other round with reads in them."""
        work = "oltp_write_only" if number % 2 else "oltp_read_write"
        counts = [f"--events={self.plan.transactions}", "--time=0"]
        counts += [f"--threads={self.plan.clients}", f"--rand-seed={self.seed + number}"]
        self._sysbench(work, "run", *counts)

    def close(self) -> None:
        """Shut the server down; TimeoutExpired if that takes too long."""
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(60)

    def _where(self) -> list[str]:
        return ["--no-defaults", f"--socket={self.socket}", "--user=root"]

    def _answers(self) -> bool:
        words = [program("mariadb"), *self._where(), "-e", "select 1"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def _sysbench(self, work: str, command: str, *more: str) -> None:
        tables = [f"--tables={self.plan.tables}", f"--table-size={self.plan.rows}"]
        where = ["--db-driver=mysql", f"--mysql-socket={self.socket}", "--mysql-user=root"]
        self._run("sysbench", work, *where, "--mysql-db=bench", *tables, *more, command)

    def _run(self, name: str, *arguments: str) -> None:
        self.place.run(None, [program(name), *arguments])


class Etcd:
    """Puts into an etcd of one member: each waits for the log, a B+ tree follows soon after.

    Old revisions are compacted after each round, as Kubernetes has it done every five minutes.
    """

    name = "etcd"
    programs = ("etcd",)

    def __init__(self, place: Place, plan: EtcdPlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed
        self.server: subprocess.Popen[bytes] | None = None
        self.port = 0

    def prepare(self) -> None:
        """Start the server and put every key once."""
        self.port, peers = _free_ports(2)
        here = f"http://127.0.0.1:{self.port}"
        options = {
            "data-dir": self.place.folder("etcd") / "data",
            "listen-client-urls": here,
            "advertise-client-urls": here,
            "listen-peer-urls": f"http://127.0.0.1:{peers}",
            "snapshot-count": self.plan.snapshot_count,
            "max-wals": self.plan.wals_max,
            "logger": "zap",
            "log-level": "error",
        }
        words = [program("etcd"), *(f"--{key}={value}" for key, value in options.items())]
        self.server = self.place.start(None, words)
        _wait_ready(self.server, self._answers, self.place.log)
        clients, keys = self.plan.clients, self.plan.keys
        self._side_by_side([range(first, keys, clients) for first in range(clients)], 0)

    def round(self, number: int) -> None:
        """Put the round's values, most of them to a tenth of the keys; forget what they replace."""
        rng = random.Random(self.seed + number)
        hot = self.plan.keys // 10
        keys = [
            rng.randrange(hot) if rng.random() < 0.8 else rng.randrange(self.plan.keys)
            for _ in range(self.plan.puts)
        ]
        clients = self.plan.clients
        latest = self._side_by_side([keys[first::clients] for first in range(clients)], number)
        with closing(_Gateway(self.port)) as gateway:
            gateway.ask("kv/compaction", {"revision": str(latest), "physical": True})

    def close(self) -> None:
        """Shut the server down; TimeoutExpired if that takes too long."""
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(30)

    def _side_by_side(self, lots: Sequence[Sequence[int]], number: int) -> int:
        """Put each lot of keys by a client of its own; return the last revision."""

        def put(at: int) -> int:
            rng, revision = random.Random(f"{self.seed} {number} {at}"), 0
            with closing(_Gateway(self.port)) as gateway:
                for key in lots[at]:
                    value = rng.randbytes(self.plan.value_bytes)
                    revision = gateway.put(b"/registry/%06d" % key, value)
            return revision

        with ThreadPoolExecutor(len(lots)) as pool:
            return max(pool.map(put, range(len(lots))))

    def _answers(self) -> bool:
        with closing(_Gateway(self.port)) as gateway:
            try:
                gateway.ask("maintenance/status", {})
            except (OSError, http.client.HTTPException, ProgramError):
                return False
        return True


class _Gateway:
    """etcd's JSON over HTTP, on one connection. Not thread-safe."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", f"/v3/{what}", json.dumps(request))
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != http.client.OK:
            message = f"etcd, {what}: {text.decode(errors='replace').strip()}"
            raise ProgramError(message)
        said: dict[str, Any] = json.loads(text)
        return said

    def close(self) -> None:
        self._connection.close()

    def put(self, key: bytes, value: bytes) -> int:
        """Return the revision that this made."""
        coded = {"key": _base64(key), "value": _base64(value)}
        return int(self.ask("kv/put", coded)["header"]["revision"])


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_ready(server: subprocess.Popen[bytes], answers: Callable[[], bool], log: Path) -> None:
    for _ in range(600):
        if answers():
            return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    message = f"{server.args!s} did not start; see {log}"
    raise ProgramError(message)
