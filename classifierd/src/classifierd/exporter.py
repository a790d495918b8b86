"""Where metrics go: an HTTP endpoint on loopback, or a file for node_exporter's textfile collector.

The endpoint answers GET /metrics and nothing else, has no state, and asks the filesystems only
when it is asked. A request is input: too much, too slow or no HTTP ends that connection alone.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET6
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from classifierd.errors import sentence
from classifierd.metrics import Filesystems

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 5.0
_CONNECTIONS_MAX = 16
_INDEX = b"streamfs: see /metrics\n"


def render(mountpoints: list[Path]) -> bytes:
    """All metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Filesystems(mountpoints))
    return generate_latest(registry)


def write_textfile(mountpoints: list[Path], path: Path) -> None:
    """Replace the file whole: node_exporter never reads half of it. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(render(mountpoints))
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _Handler(BaseHTTPRequestHandler):
    server_version = "streamfs"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_SECONDS
    patience_seconds = _TIMEOUT_SECONDS  # while others are answered
    mountpoints: list[Path]
    asking: threading.Lock

    def do_GET(self) -> None:
        """Answer GET."""
        path = self.path.split("?", 1)[0]
        if path == "/metrics":
            self._tell_metrics()
        elif path == "/":
            self._answer(HTTPStatus.OK, "text/plain; charset=utf-8", _INDEX)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _tell_metrics(self) -> None:
        # Requests ask one at a time: a filesystem has few connections for one user, the daemon's
        # included. A request that waits in vain says so, and gives back its place.
        if not self.asking.acquire(timeout=self.patience_seconds):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "others are being answered")
            return
        try:
            body = render(self.mountpoints)
        finally:
            self.asking.release()
        self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, body)

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the log for what matters."""
        log.debug("%s: %s", self.address_string(), (format % args)[:200])


class Endpoint(ThreadingHTTPServer):
    """Listens at once; `port` 0 takes a free one (server_address says which). Raises OSError."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, mountpoints: list[Path], address: str, port: int) -> None:
        if ":" in address:
            self.address_family = AF_INET6
        self._places = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        shared = {"mountpoints": mountpoints, "asking": threading.Lock()}
        handler = type("Handler", (_Handler,), shared)
        super().__init__((address, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take it up, if there is a place left; scrapers come again."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer it, on a thread of its own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say what went wrong with one connection; the others go on."""
        log.debug("a connection from %s ended badly", client_address, exc_info=True)


def keep_textfile(
    mountpoints: list[Path], path: Path, seconds: float, wait: Callable[[float], bool]
) -> None:
    """Write the file each `seconds`, until `wait` says that it is enough; failures are logged."""
    complaint = ""
    while True:
        try:
            write_textfile(mountpoints, path)
            complaint = ""
        except OSError as error:
            if str(error) != complaint:
                log.warning("%s", sentence(error))
            complaint = str(error)
        if wait(seconds):
            return
