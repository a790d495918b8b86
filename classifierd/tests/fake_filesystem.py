"""A filesystem as the daemon sees it: a control socket, a telemetry ring and a model area."""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from classifierd import _core
from classifierd.records import RECORD, Records

UUID = bytes(range(16))
_PEEK = socket.MSG_PEEK | socket.MSG_DONTWAIT
RING_HEADER = 64


class Ring:
    """The producer's end of a telemetry area with one ring or more."""

    def __init__(self, capacity: int = 1 << 17, rings: int = 1, blocks: int = 1 << 18) -> None:
        self.capacity, self.rings = capacity, rings
        self.size = 64 + rings * (RING_HEADER + capacity * RECORD.itemsize)
        self.fd = os.memfd_create("telemetry", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        self.map = mmap.mmap(self.fd, self.size)
        self.map[0:64] = struct.pack(
            "<QIIIIQ16sQQ",
            _core.TELEMETRY_MAGIC,
            _core.TELEMETRY_VERSION,
            RECORD.itemsize,
            rings,
            capacity,
            blocks,
            UUID,
            0,
            0,
        )

    def _at(self, ring: int) -> int:
        return 64 + ring * (RING_HEADER + self.capacity * RECORD.itemsize)

    def head(self, ring: int = 0) -> int:
        """Records ever produced."""
        return int(struct.unpack_from("<Q", self.map, self._at(ring))[0])

    def set_head(self, value: int, ring: int = 0) -> None:
        """Store head, honest or not."""
        struct.pack_into("<Q", self.map, self._at(ring), value)

    def set_clock(self, pages: int) -> None:
        """Pages written to the device so far."""
        struct.pack_into("<Q", self.map, 48, pages)

    def produce(self, records: Records, ring: int = 0) -> None:
        """Append records as the filesystem would."""
        head = self.head(ring)
        for i, record in enumerate(records):
            slot = (head + i) % self.capacity
            at = self._at(ring) + RING_HEADER + slot * RECORD.itemsize
            self.map[at : at + RECORD.itemsize] = record.tobytes()
        self.set_head(head + len(records), ring)

    def close(self) -> None:
        """Give everything back."""
        self.map.close()
        os.close(self.fd)


class ModelArea:
    """The model memory as the filesystem makes it."""

    def __init__(self, uuid: bytes = UUID) -> None:
        self.fd = os.memfd_create("model", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, _core.MODEL_BYTES)
        self.map = mmap.mmap(self.fd, _core.MODEL_BYTES)
        self.map[0:32] = struct.pack(
            "<QII16s", _core.MODEL_MAGIC, _core.MODEL_VERSION, _core.MODEL_BUFFER_BYTES, uuid
        )

    @property
    def active(self) -> int:
        """The generation published last; 0 = none."""
        return int(struct.unpack_from("<Q", self.map, 32)[0])

    @property
    def heartbeat(self) -> int:
        """Milliseconds, the daemon's."""
        return int(struct.unpack_from("<Q", self.map, 40)[0])

    def checked_table(self, pstreams: int, uuid: bytes = UUID) -> np.ndarray:
        """The table that a filesystem would adopt. Raises AssertionError if it would refuse."""
        magic, version, size = struct.unpack_from("<QII", self.map, 0)
        assert (magic, version) == (_core.MODEL_MAGIC, _core.MODEL_VERSION)
        assert size == _core.MODEL_BUFFER_BYTES
        assert self.map[16:32] == uuid
        at = 64 + (self.active % 2) * _core.MODEL_BUFFER_BYTES
        generation, count, crc = struct.unpack_from("<QII", self.map, at)
        assert generation == self.active > 0
        assert 1 <= count <= pstreams
        assert _core.crc32c(self.map[at + 48 : at + _core.MODEL_BUFFER_BYTES]) == crc
        first = at + 72 + 5 * 128  # after the classes' edges and pStreams
        row_of = np.frombuffer(self.map[first : first + 2 * _core.VSTREAMS], np.uint16)
        first += 2 * _core.VSTREAMS
        entries = self.map[first : first + _core.TABLE_ROWS * _core.SHAPES]
        table = np.frombuffer(entries, np.uint8).reshape(_core.TABLE_ROWS, _core.SHAPES)[row_of]
        assert table.max() < count
        return table

    def serves(self) -> int:
        """Which part of the active model places data: 0 the table, 1 the logistic model."""
        at = 64 + (self.active % 2) * _core.MODEL_BUFFER_BYTES + 48
        return int(struct.unpack_from("<I", self.map, at)[0])

    def kind(self) -> str:
        """The name of the active model."""
        at = 64 + (self.active % 2) * _core.MODEL_BUFFER_BYTES + 24
        return self.map[at : at + 24].rstrip(b"\0").decode()

    def clock_pages(self) -> int:
        """The device clock the active model was made at."""
        at = 64 + (self.active % 2) * _core.MODEL_BUFFER_BYTES
        return int(struct.unpack_from("<Q", self.map, at + 16)[0])

    def close(self) -> None:
        """Give everything back."""
        self.map.close()
        os.close(self.fd)


class FakeFilesystem:
    """Serves the control socket from a thread until closed."""

    def __init__(self, path: Path, ring: Ring, model: ModelArea, pstreams: int = 8) -> None:
        self.path, self.ring, self.model, self.pstreams = path, ring, model, pstreams
        self.streams: list[dict[str, object]] = []
        self.more: dict[str, dict[str, object]] = {}  # answers to other requests
        self.device: object = None
        self.asked: list[dict[str, object]] = []
        self.busy = False  # with another daemon
        self.hang_up_seconds = 0.0  # until it sees that its daemon hung up
        self._daemon: socket.socket | None = None
        self._place = threading.Lock()
        self.space: object = {"data_blocks": 1 << 18, "free_blocks": 1 << 18}
        self.attached = threading.Event()
        self.attachments = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._talks: list[tuple[socket.socket, threading.Thread]] = []
        self._accepts = threading.Thread(target=self._accept, daemon=True)
        self._accepts.start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._talk, args=(peer,), daemon=True)
            self._talks.append((peer, thread))
            thread.start()

    def _talk(self, peer: socket.socket) -> None:
        # Either side may go at any time.
        with suppress(ConnectionError), peer.makefile("rb") as lines:
            for line in lines:
                request = json.loads(line)
                self.asked.append(request)
                answer, fds = self._answer(request["op"], peer)
                socket.send_fds(peer, [json.dumps(answer).encode() + b"\n"], fds)
                if fds:
                    self.attached.set()
        time.sleep(self.hang_up_seconds)
        with self._place:
            self._daemon = None if self._daemon is peer else self._daemon

    def _takes_place(self, peer: socket.socket) -> bool:
        """Whether there is no daemon: none attached, or one whose end is seen by now."""
        with self._place:
            held = self._daemon is not None and (self.hang_up_seconds > 0 or not self._hung_up())
            self._daemon = self._daemon if held else peer
            return not held

    def _hung_up(self) -> bool:
        try:
            return self._daemon is None or self._daemon.recv(1, _PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _answer(self, op: str, peer: socket.socket) -> tuple[dict[str, object], list[int]]:
        if op == "streams":
            return {"ok": True, "streams": self.streams}, []
        if op == "status" and op not in self.more:
            return {"ok": True, "space": self.space}, []
        if op == "attach" and (self.busy or not self._takes_place(peer)):
            return {"ok": False, "errno": 16, "error": "a daemon is attached already"}, []
        if op == "attach":
            self.attachments += 1
            sizes = {"telemetry_bytes": self.ring.size, "model_bytes": _core.MODEL_BYTES}
            counts = {"pstream_count": self.pstreams, "capacity_blocks": 1 << 18}
            fds = [self.ring.fd, self.model.fd]
            answer = {"ok": True, **sizes, **counts, "uuid": UUID.hex(), "device": self.device}
            return answer, fds
        if op == "savings" and op not in self.more:
            return {"ok": True}, []
        if op in self.more:
            return {"ok": True, **self.more[op]}, []
        return {"ok": False, "errno": 22, "error": "unknown op"}, []

    def close(self) -> None:
        """Go away, as at an unmount."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepts.join()
        self._listener.close()
        for peer, thread in self._talks:
            with suppress(OSError):  # it went before
                peer.shutdown(socket.SHUT_RDWR)
            thread.join()
            peer.close()
        self.path.unlink()
