"""The workload's plain files: logs that rotate, media that stay, small trees that come and go."""

import os
import random
import shutil
import tarfile
from io import BytesIO
from pathlib import Path

from bench.programs.place import Place
from bench.programs.plan import MIB, FilesPlan


class Logs:
    """A few services that append to their logs, make them durable and rotate them."""

    name = "logs"

    def __init__(self, place: Place, plan: FilesPlan, seed: int) -> None:
        self.place, self.plan, self.seed = place, plan, seed
        self.program = place.scratch / "log_writer.py"

    def prepare(self) -> None:
        """Start with logs that have rotated already."""
        # A copy: the workload's user may not be able to read this folder.
        shutil.copy(Path(__file__).with_name("log_writer.py"), self.program)
        self.round(0)

    def round(self, number: int) -> None:
        """Append the round's lines; every service is its own stretch of the log writer."""
        counts = (self.plan.log_mib * MIB, self.plan.log_rotate_mib * MIB, self.plan.log_kept)
        words = [*map(str, counts), str(self.seed + number)]
        program = ["/usr/bin/python3", "-I", str(self.program)]
        self.place.run(None, [*program, str(self.place.folder("log")), *words])

    def close(self) -> None:
        """Nothing runs between rounds."""


class Media:
    """A library of large files, each written once; new ones come, the oldest go."""

    name = "media"

    def __init__(self, place: Place, plan: FilesPlan, seed: int) -> None:
        self.place, self.plan = place, plan
        self.source = place.scratch / "media.bin"
        self.source.write_bytes(random.Random(seed).randbytes(plan.media_mib * MIB))
        self.next = 0

    def prepare(self) -> None:
        """Fill the library."""
        for _ in range(self.plan.media_files):
            self._add()

    def round(self, number: int) -> None:  # noqa: ARG002
        """Exchange some of the oldest for new ones."""
        for _ in range(self.plan.media_new):
            oldest = self.next - self.plan.media_files
            self.place.run(None, ["rm", self._path(oldest)])
            self._add()

    def close(self) -> None:
        """Nothing runs between rounds."""

    def _path(self, number: int) -> Path:
        return self.place.folder("media") / f"clip-{number:05}.mp4"

    def _add(self) -> None:
        self.place.run(None, ["cp", self.source, self._path(self.next)])
        self.next += 1


class Trees:
    """Source trees unpacked, edited in place and deleted, as builds and checkouts do."""

    name = "trees"

    def __init__(self, place: Place, plan: FilesPlan, seed: int) -> None:
        self.place, self.plan = place, plan
        self.archive = place.scratch / "tree.tar"
        self._make_archive(random.Random(seed))
        self.next = 0

    def prepare(self) -> None:
        """Unpack as many trees as are kept."""
        for _ in range(self.plan.trees_kept):
            self._unpack()

    def round(self, number: int) -> None:  # noqa: ARG002
        """Delete the oldest tree, unpack another and edit a tenth of its files."""
        oldest = self._path(self.next - self.plan.trees_kept)
        self.place.run(None, ["rm", "-r", oldest])
        tree = self._unpack()
        edited = sorted(tree.glob("*/*0.txt"))
        self.place.run(None, ["sed", "-i", "s/^./#/", *edited])

    def close(self) -> None:
        """Nothing runs between rounds."""

    def _path(self, number: int) -> Path:
        return self.place.folder("trees") / f"tree-{number:05}"

    def _unpack(self) -> Path:
        tree = self._path(self.next)
        self.next += 1
        self.place.run(None, ["mkdir", tree])
        self.place.run(None, ["tar", "-x", "-f", self.archive, "-C", tree])
        return tree

    def _make_archive(self, randomness: random.Random) -> None:
        with tarfile.open(self.archive, "w") as archive:
            for number in range(self.plan.tree_files):
                size = int(randomness.lognormvariate(9.2, 1.0))
                text = b"x" * 79 + b"\n"
                content = (text * (size // 80 + 1))[:size]
                member = tarfile.TarInfo(f"d{number // 50:03}/f{number:04}.txt")
                member.size, member.mode = len(content), 0o644
                archive.addfile(member, BytesIO(content))


class Names:
    """Creates directories with new names in each round, and deletes the last round's."""

    name = "names"

    def __init__(self, place: Place, plan: FilesPlan) -> None:
        self.place, self.names = place, plan.new_names
        self.program = place.scratch / "names_writer.py"

    def prepare(self) -> None:
        """Make the first ones."""
        shutil.copy(Path(__file__).with_name("names_writer.py"), self.program)
        self.round(0)

    def round(self, number: int) -> None:
        """Make a round's directories."""
        program = ["/usr/bin/python3", "-I", str(self.program), str(self.place.folder("names"))]
        self.place.run(None, [*program, str(number), str(self.names)])

    def close(self) -> None:
        """Nothing runs between rounds."""


class Ballast:
    """Cold files, written once, that set how full the device is. Grows and shrinks in pieces."""

    PIECE_BYTES = MIB

    def __init__(self, place: Place, seed: int) -> None:
        self.folder = place.folder("ballast")
        self.block = random.Random(seed).randbytes(MIB)
        self.pieces: list[tuple[Path, int]] = []
        self.next = 0

    def add(self, size: int) -> None:
        """Write ``size`` bytes (whole 4 KiB blocks) in files of at most a piece."""
        while size > 0:
            part = min(size, self.PIECE_BYTES)
            path = self.folder / f"cold-{self.next:05}.bin"
            self.next += 1
            with path.open("wb", buffering=0) as file:
                file.write(self.block[:part])
                os.fsync(file.fileno())
            self.pieces.append((path, part))
            size -= part

    def remove(self, size: int) -> int:
        """Delete whole files, newest first, of at least ``size`` bytes; return how many."""
        removed = 0
        while self.pieces and removed < size:
            path, part = self.pieces.pop()
            path.unlink()
            removed += part
        return removed
