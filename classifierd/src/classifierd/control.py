"""The filesystem's control socket (base/wire/control.h): one JSON request and answer a line."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from classifierd.contexts import VStream, parse_streams

CONTROL_XATTR = "user.streamfs.control"
_ANSWER_BYTES_MAX = 64 << 20
_TIMEOUT_SECONDS = 10.0


class ControlError(OSError):
    """The filesystem is not there, refused, or answered something that is no answer."""


def socket_path(mountpoint: Path) -> Path:
    """Where the filesystem mounted there listens. Raises ControlError if none does."""
    try:
        value = os.getxattr(mountpoint, CONTROL_XATTR)
    except OSError as error:
        msg = f"{mountpoint}: no streamfs is mounted there ({error.strerror})"
        raise ControlError(error.errno, msg) from error
    return Path(os.fsdecode(value.rstrip(b"\0")))


GC_MODES = ("same", "own", "shared")
VICTIMS = ("greedy", "cost-benefit")


@dataclass(frozen=True)
class Collection:
    """How the device collects garbage; what it does not tell is taken to be usual."""

    gc_mode: str = "same"  # where copies go: GC_MODES
    spare: float = 0.07  # physical ÷ capacity - 1
    block_pages: int = 256  # erased together
    victim: str = "greedy"  # the policy that chooses the block to collect: VICTIMS

    @staticmethod
    def parse(said: object) -> Collection:
        """Take what attach says of the device; what makes no sense counts as not told."""
        told = said if isinstance(said, dict) else {}
        mode, spare, block = (told.get(key) for key in ("gc_mode", "spare", "erase_unit_blocks"))
        usual, victim = Collection(), told.get("victim")
        return Collection(
            mode if mode in GC_MODES else usual.gc_mode,
            float(spare) if isinstance(spare, float) and 0 < spare <= 1 else usual.spare,
            block if isinstance(block, int) and 1 < block <= 1 << 20 else usual.block_pages,
            victim if victim in VICTIMS else usual.victim,
        )


@dataclass(frozen=True)
class Attachment:
    """The answer to attach. Its holder closes the descriptors."""

    telemetry_fd: int
    model_fd: int
    pstream_count: int
    collection: Collection = Collection()

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.telemetry_fd)
        os.close(self.model_fd)


class ControlClient:
    """A connection; the filesystem takes its end for the end of the daemon."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_TIMEOUT_SECONDS)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            msg = f"{path}: {error.strerror or error}"
            raise ControlError(error.errno or errno.EIO, msg) from error

    def __enter__(self) -> ControlClient:
        """Return the connection itself; it is closed on leaving."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hang up."""
        self._socket.close()

    def _exchange(self, request: dict[str, object]) -> tuple[dict[str, object], list[int]]:
        answer, fds = bytearray(), list[int]()
        try:
            # A client that is turned away finds the connection closed, and in it the reason.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._socket.sendall(json.dumps(request).encode() + b"\n")
            while not answer.endswith(b"\n"):
                part, new_fds, _, _ = socket.recv_fds(self._socket, 1 << 16, 4)
                fds += new_fds
                answer += part
                if not part or len(answer) > _ANSWER_BYTES_MAX:
                    break
            parsed = json.loads(answer)
        except (OSError, ValueError) as error:
            _close(fds)
            msg = f"control socket: {error}"
            raise ControlError(errno.EPIPE, msg) from error
        if not isinstance(parsed, dict):
            _close(fds)
            msg = "control socket: the answer is no object"
            raise ControlError(errno.EPROTO, msg)
        return parsed, fds

    def request(self, op: str, **more: object) -> tuple[dict[str, object], list[int]]:
        """Ask; returns the answer and the descriptors that came with it. Raises ControlError."""
        answer, fds = self._exchange({"op": op, **more})
        if answer.get("ok") is not True:
            _close(fds)
            code = answer.get("errno")
            msg = f"{op}: {answer.get('error', 'refused')}"
            raise ControlError(code if isinstance(code, int) else errno.EIO, msg)
        return answer, fds

    def attach(self) -> Attachment:
        """Become the filesystem's daemon. EBUSY while another one is."""
        answer, fds = self.request("attach")
        count = answer.get("pstream_count")
        if len(fds) != 2 or not isinstance(count, int) or not 1 <= count <= 256:
            _close(fds)
            msg = "attach: two descriptors and a sensible pstream_count were expected"
            raise ControlError(errno.EPROTO, msg)
        return Attachment(fds[0], fds[1], count, Collection.parse(answer.get("device")))

    def streams(self) -> list[VStream]:
        """The descriptors of all vStreams."""
        answer, fds = self.request("streams")
        _close(fds)
        return parse_streams(answer.get("streams"))

    def used_blocks(self) -> int:
        """Blocks of the data device that hold data; 0 where the filesystem does not say."""
        answer, fds = self.request("status")
        _close(fds)
        space = answer.get("space")
        counts = space if isinstance(space, dict) else {}
        blocks, free = counts.get("data_blocks"), counts.get("free_blocks")
        return max(0, blocks - free) if isinstance(blocks, int) and isinstance(free, int) else 0

    def device_bytes(self) -> tuple[int, int]:
        """The bytes sent to the device and programmed by it; 0 where it does not tell."""
        answer, fds = self.request("status")
        _close(fds)
        device = answer.get("device")
        told = device if isinstance(device, dict) else {}
        written, nand = (told.get(name) for name in ("written_bytes", "nand_bytes"))
        return (_count(written), _count(nand))

    def gone(self) -> bool:
        """Whether the filesystem hung up; does not wait."""
        try:
            readable, _, _ = select.select([self._socket], [], [], 0)
            return bool(readable) and self._socket.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _count(told: object) -> int:
    return told if isinstance(told, int) and told >= 0 else 0
