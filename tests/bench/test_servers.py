"""MariaDB and etcd of the test set: what is missing is said, and what is planned is asked for."""

import base64
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from bench.accounting import descendants
from bench.programs.place import Place, ProgramError, unprivileged_user
from bench.programs.plan import QUICK
from bench.programs.servers import Etcd, MariaDb, not_installed
from bench.suites import placement
from bench.table import Row

PLAN = replace(QUICK.etcd, keys=40, puts=30, value_bytes=16, clients=3)


class Gateway(ThreadingHTTPServer):
    """An etcd that keeps everything it was told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.puts: list[tuple[bytes, bytes]] = []
        self.compacted: list[int] = []
        self.lock = threading.Lock()

    def answer(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked; the revision is the number of puts."""
        with self.lock:
            if what == "/v3/kv/put":
                self.puts.append((base64.b64decode(asked["key"]), base64.b64decode(asked["value"])))
            else:
                self.compacted.append(int(asked["revision"]))
            return {"header": {"revision": str(len(self.puts))}}


class Handler(BaseHTTPRequestHandler):
    """A connection to the gateway."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet
    server: Gateway

    def do_POST(self) -> None:
        """Answer one request; it knows /v3/kv/ only."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.path.startswith("/v3/kv/")
        text = json.dumps(self.server.answer(self.path, asked) if known else {"error": "no"})
        self.send_response(200 if known else 500)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def place() -> Iterator[Place]:
    """A place that another user can reach, which pytest's own folders are not."""
    with tempfile.TemporaryDirectory(prefix="streamfs-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        for folder in ("mount", "scratch"):
            (path / folder).mkdir(mode=0o755)
        yield Place(path / "mount", path / "scratch", None, unprivileged_user(), path / "log")


def test_what_is_not_installed_is_said_with_the_way_to_get_it() -> None:
    assert not_installed([Path(sys.executable).name, "sh"]) is None
    said = not_installed(["sh", "no-such-server", "nor-this"])
    assert said == "not installed: no-such-server, nor-this; run scripts/setup --bench"


def test_a_work_without_its_programs_is_a_row_without_a_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    def captured(work: str, _: object) -> tuple[placement.Replays, placement.Replays]:
        done.append(work)
        bare = placement.Replays(work, {policy: [1.0] for policy in placement.POLICIES})
        return bare, bare

    monkeypatch.setattr(placement, "captured", captured)
    monkeypatch.setattr(placement, "why_not", {"logs": "not installed: cat"}.get)
    rows = list(placement.of_test_set((1,), quick=True))
    assert done == ["SQLite"]
    assert Row("logs", None, "not installed: cat") in rows


def test_every_put_of_a_round_is_made_and_what_it_replaced_is_forgotten(
    gateway: Gateway, place: Place
) -> None:
    etcd = Etcd(place, PLAN, seed=1)
    etcd.port = gateway.server_port
    etcd.round(1)
    etcd.round(2)
    assert len(gateway.puts) == 2 * PLAN.puts
    assert gateway.compacted == [PLAN.puts, 2 * PLAN.puts]
    keys = {int(key.removeprefix(b"/registry/")) for key, _ in gateway.puts}
    assert keys <= set(range(PLAN.keys))
    assert {len(value) for _, value in gateway.puts} == {PLAN.value_bytes}
    assert len({value for _, value in gateway.puts}) == len(gateway.puts)
    hot = sum(int(key[-6:]) < PLAN.keys // 10 for key, _ in gateway.puts)
    assert hot > PLAN.puts


def test_a_round_asks_for_the_same_again(gateway: Gateway, place: Place) -> None:
    for _ in range(2):
        etcd = Etcd(place, replace(PLAN, clients=1), seed=7)
        etcd.port = gateway.server_port
        etcd.round(3)
    assert gateway.puts[: PLAN.puts] == gateway.puts[PLAN.puts :]


def test_a_server_that_ends_at_once_is_an_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.programs.servers.program", lambda _: "/bin/false")
    with pytest.raises(ProgramError, match="did not start"):
        Etcd(place, PLAN, seed=1).prepare()


@pytest.mark.long
@pytest.mark.parametrize("kind", [MariaDb, Etcd])
def test_a_server_does_its_rounds_and_is_gone_after_them(
    kind: type[MariaDb | Etcd], place: Place
) -> None:
    if reason := not_installed(kind.programs):
        pytest.skip(reason)
    before = set(descendants(os.getpid()))
    server = kind(place, getattr(QUICK, kind.name), seed=1)
    try:
        server.prepare()
        for number in (1, 2):
            server.round(number)
        server.close()
    finally:
        if server.server is not None:
            server.server.kill()
    assert set(descendants(os.getpid())) == before
    assert sum(path.stat().st_size for path in place.mount.rglob("*") if path.is_file()) > 1 << 20
