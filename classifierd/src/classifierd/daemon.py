"""The daemon: telemetry in, model tables out, for as long as the filesystem is mounted.

Nothing waits for it. It may die at any moment: the last table goes on serving.
"""

from __future__ import annotations

import errno
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd import _core, explain, state
from classifierd.adoption import Offer, settled
from classifierd.config import Config, ConfigError
from classifierd.contest import Device
from classifierd.contexts import uses_of
from classifierd.control import Attachment, ControlClient, ControlError, socket_path
from classifierd.errors import sentence
from classifierd.knowledge import Identity, Knowledge
from classifierd.publication import basis_of, publish
from classifierd.records import from_bytes
from classifierd.savings import Savings
from classifierd.wishes import Wishes

log = logging.getLogger(__name__)

_RECORDS_PER_READ = 1 << 17
_TELL_SECONDS = 5.0
# By then the filesystem has a table that was published, and its writes by the old one were read.
_ADOPTED_SECONDS = 2.0
# The filesystem looks once a second, but never with placement=off.
_LOOKED_SECONDS, _ADOPTION_POLL_SECONDS = 5.0, 0.05
# The filesystem may see a little later that this daemon hung up; till then its place is taken.
_HANG_UP_SECONDS, _HANG_UP_POLL_SECONDS = 5.0, 0.01
_COPIES_GO = {
    "same": "their pStream",
    "own": "open blocks of their pStream's own",
    "shared": "open blocks of all",
}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_ms() -> int:
    # Goes on while the machine sleeps: moments are dated by how long ago they were.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Session:
    """An attachment to one mounted filesystem."""

    def __init__(
        self, client: ControlClient, attachment: Attachment, config: Config, state_dir: Path | None
    ) -> None:
        self._client = client
        self._reader = _core.TelemetryReader(attachment.telemetry_fd)
        self._writer = _core.ModelWriter(attachment.model_fd)
        self._lost = self._rejected = self._met_clock = 0
        uuid, capacity = self._reader.uuid, self._reader.capacity_blocks
        if self._writer.uuid != uuid:
            msg = "telemetry and model are of different filesystems"
            raise RuntimeError(msg)
        if not self._reader.sealed:
            log.warning("the telemetry area is not sealed against shrinking")
        used = client.used_blocks()
        how = attachment.collection
        device = Device(
            max(capacity, 1),
            attachment.pstream_count,
            how.spare,
            how.block_pages,
            how.gc_mode,
            how.victim,
        )
        self._knowledge = Knowledge(Identity(uuid, capacity, used), device, config, state_dir)
        self._savings = Savings(max(capacity, 1), device, used, _now_ms())
        self._state_dir, self._uuid = state_dir, uuid
        # pStreams that the last table names, and those that only ones before it did.
        self._named, self._unnamed = frozenset[int](), frozenset[int]()
        self._named_at = 0.0
        # The vStreams that the published model knows, while its file is not written.
        self._unsaved_uses: npt.NDArray[np.uint16] | None = None
        self._offer: Offer | None = None  # published, and not known to be adopted or refused
        self._told = True  # whether the filesystem wants to know what streams save
        log.info(
            "attached: %s device, %s of it used, %d pStreams, copies to %s, "
            "epochs of %d pages at most",
            explain.size(capacity),
            explain.size(used),
            attachment.pstream_count,
            _COPIES_GO[how.gc_mode],
            self._knowledge.learner.epoch_pages,
        )

    def start(self) -> None:
        """Take up the last run's knowledge and publish it."""
        self._meet_vstreams()
        if self._knowledge.load():
            self._publish()
        if self._state_dir is not None:
            self._savings.load(self._state_dir, self._uuid)
        self.tell_savings()

    def _meet_vstreams(self) -> None:
        # In this order: a vStream born by then is in the answer, so the table speaks for it.
        self._met_clock = self._reader.clock_pages
        self._knowledge.know(self._client.streams())

    def poll(self) -> int:
        """Learn from what the ring holds, closing epochs as they fill; returns the records read."""
        records = from_bytes(self._reader.read(_RECORDS_PER_READ))
        self._count_losses(len(records))
        self._savings.feed(records)
        at = 0
        while at < len(records):
            at += self._knowledge.feed(records[at:])
            if self._knowledge.epoch_due:
                self.end_epoch()
        return len(records)

    def _count_losses(self, read: int) -> None:
        lost, rejected = self._reader.lost - self._lost, self._reader.rejected - self._rejected
        self._lost, self._rejected = self._reader.lost, self._reader.rejected
        if rejected:
            log.warning("telemetry: %d records made no sense and were skipped", rejected)
        if lost:
            log.warning("telemetry: %d records lost, the filesystem was faster", lost)
        if lost > read:
            self._knowledge.forget_births()

    def end_epoch(self) -> None:
        """Close the epoch and publish."""
        self._meet_vstreams()
        self._knowledge.fill(self._client.used_blocks())
        self._knowledge.end_epoch()
        self._publish()

    def _publish(self) -> None:
        self._unsaved_uses = None  # the writer prepares another model over the published one
        named = publish(self._writer, self._knowledge, self._met_clock)
        if named is not None:
            # A crowded device gets one stream for all; the next mount need not be crowded.
            if not self._knowledge.crowded:
                self._unsaved_uses = uses_of(self._knowledge.learner.vstreams.values())
            self._unnamed = (self._unnamed | self._named) - named
            self._named, self._named_at = named, time.monotonic()
            # An older table that the filesystem did not look at yet is replaced by this one.
            self._offer = Offer(
                self._writer.generation, self._knowledge.published, basis_of(self._knowledge)
            )

    def report_adoption(self) -> bool:
        """Log whether the filesystem adopted the last table; False while it has not looked."""
        if self._offer is not None and settled(self._offer, self._client.request("status")[0]):
            self._offer = None
        if self._offer is not None and time.monotonic() - self._named_at >= _LOOKED_SECONDS:
            log.warning("model %d: the filesystem did not look at it", self._offer.generation)
            self._offer = None
        return self._offer is None

    def await_adoption(self) -> None:
        """Return once the filesystem adopted or refused the last table, or looks at none."""
        while not self.report_adoption():
            time.sleep(_ADOPTION_POLL_SECONDS)

    def _release(self) -> None:
        """As the device does for what a new table names no more (placement/model.cc)."""
        if self._unnamed and time.monotonic() - self._named_at >= _ADOPTED_SECONDS:
            self._savings.release(self._unnamed)
            self._unnamed = frozenset()

    def save(self) -> None:
        """Keep what is known for the next run."""
        self._knowledge.save()
        if self._state_dir is None:
            return
        self._save_model(self._state_dir)
        self._savings.count(_now_ms())
        try:
            self._savings.save(self._state_dir, self._uuid)
        except OSError as error:
            log.warning("savings not saved: %s", sentence(error))

    def _save_model(self, directory: Path) -> None:
        """Store the published model, with which a mount without a daemon begins."""
        if self._unsaved_uses is None:
            return
        try:
            state.replace_whole(
                state.model_path_of(directory, self._uuid), self._writer.stored(self._unsaved_uses)
            )
        except OSError as error:
            log.warning("model not saved: %s", sentence(error))
        else:
            self._unsaved_uses = None

    def tell_savings(self) -> None:
        """Tell the filesystem what streams save, for whoever asks it."""
        self._release()
        if not self._told:
            return
        now_ms = _now_ms()
        self._savings.count(now_ms)
        self._savings.remember(now_ms, _steady_ms(), *self._client.device_bytes())
        try:
            self._client.request("savings", report=self._savings.report(now_ms))
        except ControlError as error:
            if error.errno not in (errno.EINVAL, errno.EACCES):
                raise
            self._told = False
            log.warning("%s", sentence(error))

    def heartbeat(self) -> None:
        """Show that the daemon is alive."""
        self._writer.heartbeat(_now_ms())


class Daemon:
    """Attaches, learns, and attaches again when the filesystem comes back."""

    def __init__(
        self,
        mountpoint: Path,
        config: Config,
        state_dir: Path | None = None,
        read_config: Callable[[], Config] | None = None,
    ) -> None:
        self._mountpoint = mountpoint
        self._config = config
        self._state_dir = state_dir
        self._read_config = read_config
        self.wishes = Wishes()
        self._complaint = ""
        self._left_at = -math.inf  # when it hung up last, by the steady clock

    def stop(self) -> None:
        """Ask the daemon to end; signal handlers may."""
        self.wishes.ask_end()

    def reload(self) -> None:
        """Ask it to read its configuration again, and go on with what it kept; handlers may."""
        self.wishes.ask_again()

    def _reload(self) -> None:
        self.wishes.again = False
        if self._read_config is None:
            return
        try:
            self._config = self._read_config()
        except ConfigError as error:
            log.warning("%s; going on as before", error)
        else:
            log.info("the configuration was read again")

    def run_once(self) -> None:
        """Learn an epoch from the ring's records. Raises ControlError or RuntimeError."""
        with ControlClient(socket_path(self._mountpoint)) as client:
            session = self._open(client)
            while session.poll() > 0:
                pass
            session.end_epoch()
            session.tell_savings()
            session.heartbeat()
            session.save()
            session.await_adoption()

    def run(self) -> None:
        """Until stopped."""
        while not self.wishes.end:
            if self.wishes.again:
                self._reload()
            try:
                with ControlClient(socket_path(self._mountpoint)) as client:
                    session = self._open(client)
                    self._complaint = ""
                    self._serve(client, session)
            except (ControlError, RuntimeError) as error:
                if self._in_its_own_way(error):
                    self.wishes.wait(_HANG_UP_POLL_SECONDS)
                    continue
                self._complain(sentence(error))
            self.wishes.wait(self._config.daemon.retry_ms / 1000)

    def _in_its_own_way(self, error: Exception) -> bool:
        """Whether the daemon that is attached already may be this one, a moment ago."""
        busy = isinstance(error, ControlError) and error.errno == errno.EBUSY
        return busy and time.monotonic() - self._left_at < _HANG_UP_SECONDS

    def _open(self, client: ControlClient) -> Session:
        attachment = client.attach()
        try:
            session = Session(client, attachment, self._config, self._state_dir)
        finally:
            attachment.close()  # The mappings stay.
        session.start()
        return session

    def _serve(self, client: ControlClient, session: Session) -> None:
        saved = beaten = told = time.monotonic()
        try:
            while not self.wishes.wait(self._config.daemon.poll_ms / 1000):
                while session.poll() >= _RECORDS_PER_READ // 2 and not self.wishes.any:
                    pass
                if self.wishes.again:
                    return
                now = time.monotonic()
                if now - beaten >= 1:
                    beaten = now
                    session.heartbeat()
                    session.report_adoption()
                    if client.gone():
                        log.info("the filesystem went away; waiting for it")
                        return
                if now - told >= _TELL_SECONDS:
                    told = now
                    session.tell_savings()
                if now - saved >= self._config.daemon.save_seconds:
                    saved = now
                    session.save()
        finally:
            session.save()
            self._left_at = time.monotonic()

    def _complain(self, trouble: str) -> None:
        """Log a trouble once, not at every try."""
        if trouble != self._complaint:
            log.warning("%s; trying again", trouble)
        self._complaint = trouble
