"""PostgreSQL under pgbench."""

import signal
import subprocess
import time
from pathlib import Path

from bench.programs.place import Place, ProgramError
from bench.programs.plan import PostgresPlan
from bench.system import finish


def postgres_bin() -> Path:
    """Return the folder of the newest PostgreSQL that Debian installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(found, key=lambda path: int(path.parts[4].split(".")[0]), default=None)
    if newest is None:
        message = "PostgreSQL is not installed; run scripts/setup"
        raise ProgramError(message)
    return newest.parent


POSTGRES_SETTINGS = """
listen_addresses = ''
shared_buffers = 48MB
fsync = on
synchronous_commit = on
full_page_writes = on
wal_level = minimal
max_wal_senders = 0
max_wal_size = {wal_mib}MB
min_wal_size = {wal_mib}MB
checkpoint_timeout = 30s
checkpoint_completion_target = 0.7
autovacuum_naptime = 5s
max_connections = 32
"""


class Cluster:
    """A PostgreSQL of its own in a place's mount, on a socket outside of it.

    The caller of ``start`` has to end it, by ``stop`` or ``abort``, also when starting failed.
    """

    def __init__(self, place: Place, max_wal_mib: int) -> None:
        self.place, self.max_wal_mib = place, max_wal_mib
        self.bin = postgres_bin()
        self.server: subprocess.Popen[bytes] | None = None
        self.sockets = place.scratch / "pg"

    def start(self, scale: int) -> None:
        """Make the cluster, start the server and load pgbench's tables."""
        self.sockets.mkdir()
        self.place.own(self.sockets)
        data = self.place.folder("postgres") / "data"
        options = ["--no-sync", "--wal-segsize=1", "--auth=trust", "--username=demo", "--no-locale"]
        self.place.run("postgresql", [self.bin / "initdb", *options, "-D", data])
        settings = POSTGRES_SETTINGS.format(wal_mib=self.max_wal_mib)
        with (data / "postgresql.conf").open("a") as file:
            file.write(settings + f"unix_socket_directories = '{self.sockets}'\n")
        self.server = self.place.start("postgresql", [self.bin / "postgres", "-D", data])
        self._wait_ready()
        self.pgbench("-i", "-q", "-s", str(scale))

    def pgbench(self, *arguments: str) -> None:
        """Run pgbench; what it says goes to the place's log."""
        self._run("pgbench", *arguments)

    def checkpoint(self) -> None:
        """Write all of its buffers now."""
        self._run("psql", "-q", "-c", "checkpoint")

    def stop(self) -> None:
        """Shut the server down; TimeoutExpired if that takes too long."""
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait(20)

    def abort(self) -> None:
        """Shut it down without a checkpoint; killed, it would leave its shared memory behind."""
        if self.server is not None:
            self.server.send_signal(signal.SIGQUIT)
            finish(self.server, 20)

    def _run(self, program: str, *arguments: str) -> None:
        where = ["-h", str(self.sockets), "-U", "demo"]
        self.place.run("postgresql", [self.bin / program, *where, *arguments, "postgres"])

    def _wait_ready(self) -> None:
        ready = [str(word) for word in (self.bin / "pg_isready", "-q", "-h", self.sockets)]
        for _ in range(600):
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.05)
        message = f"PostgreSQL did not start; see {self.place.log}"
        raise ProgramError(message)


class Postgres:
    """pgbench against a cluster of its own in the mount.

    Every commit waits for the log to be on the medium, which rewrites the log's last page; the
    log's segments are recycled, because a checkpoint comes whenever ``max_wal_mib`` is used up.
    """

    name = "postgres"

    def __init__(self, place: Place, plan: PostgresPlan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        self.cluster = Cluster(place, plan.max_wal_mib)

    def prepare(self) -> None:
        """Make the cluster, start the server and load the tables."""
        self.cluster.start(self.plan.scale)

    def round(self, number: int) -> None:
        """Run the round's transactions; pgbench empties its history table first."""
        clients = str(self.plan.clients)
        counts = ["-c", clients, "-j", "1", "-t", str(self.plan.transactions)]
        self.cluster.pgbench(
            "-b", "simple-update", "-M", "prepared", f"--random-seed={self.seed + number}", *counts
        )

    def close(self) -> None:
        """Shut the server down."""
        self.cluster.stop()

    def abort(self) -> None:
        """Shut it down at once."""
        self.cluster.abort()
