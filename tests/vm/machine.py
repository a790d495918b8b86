"""A virtual machine with two FDP SSDs and two NVDIMMs, whose power can be cut.

The host asks an agent in the guest to run commands. Notes that the guest writes into a port are in
a file of the host at once, and stay there whatever happens to the guest.
"""

import contextlib
import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GUEST = ROOT / "build/vm"
GUEST_F2FS = ROOT / "build/vm-f2fs"  # another kernel for the same guest
SETUPS = ("passthrough", "block")
SSD_BYTES = 1 << 30
PMEM_BYTES = 256 << 20
RECLAIM_UNIT_BYTES = 16 << 20
LBA_BYTES = {"passthrough": 512, "block": 4096}
HANDLES = 8
BOOT_SECONDS = 300.0
FIND_SECONDS = 60.0
RUN_SECONDS = 120.0
CONSOLE_TAIL = 2000
COMMAND_LINE = (
    "root=PARTLABEL=vmroot rw rootwait init=/init console=ttyS0 quiet loglevel=4 panic=-1 "
    "mitigations=off tsc=reliable"
)


class Done(NamedTuple):
    """How a command in the guest ended."""

    code: int
    out: str
    err: str


def sparse(path: Path, size: int) -> Path:
    """A file that is a device's medium; kept if it is there."""
    if not path.exists():
        with path.open("wb") as file:
            file.truncate(size)
    return path


def ssd_words(name: str, image: Path) -> list[str]:
    """An NVMe controller with one namespace, which may use every reclaim unit handle."""
    subsystem = f"fdp=on,fdp.runs={RECLAIM_UNIT_BYTES},fdp.nrg=1,fdp.nruh={HANDLES}"
    handles = ";".join(str(handle) for handle in range(HANDLES))
    lba = f"logical_block_size={LBA_BYTES[name]},physical_block_size={LBA_BYTES[name]}"
    return [
        *("-device", f"nvme-subsys,id=sub-{name},nqn={name},{subsystem}"),
        *("-device", f"nvme,id=ctrl-{name},serial={name},subsys=sub-{name}"),
        *("-drive", f"if=none,id={name},file={image},format=raw,discard=unmap,cache=writeback"),
        *("-device", f"nvme-ns,drive={name},bus=ctrl-{name},nsid=1,fdp.ruhs={handles},{lba}"),
    ]


def disk_words(name: str, image: Path, options: str) -> list[str]:
    """A plain NVMe disk."""
    return [
        *("-drive", f"if=none,id={name},file={image},format=raw,{options}"),
        *("-device", f"nvme,serial={name},drive={name}"),
    ]


def pmem_words(name: str, image: Path) -> list[str]:
    """An NVDIMM."""
    backend = f"memory-backend-file,id=mem-{name},share=on,mem-path={image},size={PMEM_BYTES}"
    return ["-object", backend, "-device", f"nvdimm,id=dimm-{name},memdev=mem-{name}"]


def kernel_words(folder: Path) -> list[str]:
    """A kernel, and the RAM disk it may need."""
    disk = folder / "initrd.gz"
    return ["-kernel", str(folder / "vmlinuz"), *(["-initrd", str(disk)] if disk.exists() else [])]


class Machine:
    """A machine, its media in a folder: they outlive each boot. For one thread."""

    def __init__(
        self,
        folder: Path,
        payload: Path,
        persistence: str = "mem-ctrl",
        kernel: Path = GUEST,
    ) -> None:
        self.folder = folder
        self.payload = payload
        self.persistence = persistence  # mem-ctrl: ADR; cpu: eADR
        self.kernel_folder = kernel
        self.controllers: dict[str, str] = {}  # by serial number, as the next
        self.namespaces: dict[str, str] = {}  # block devices
        self.kernel = ""
        self._qemu: subprocess.Popen[bytes] | None = None
        self._agent: socket.socket | None = None
        self._heard = b""

    def notes(self, name: str) -> Path:
        """The file of the guest's notes from a port."""
        return self.folder / f"notes-{name}"

    def _words(self, agent: int) -> list[str]:
        words = ["qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=512"]
        words += ["-cpu", "max", "-smp", "2", "-m", "1536M,slots=4,maxmem=8G", "-nodefaults"]
        words += ["-machine", f"q35,nvdimm=on,nvdimm-persistence={self.persistence}"]
        words += ["-display", "none", "-no-reboot", *kernel_words(self.kernel_folder)]
        words += ["-append", COMMAND_LINE, "-serial", f"file:{self.folder / 'console'}"]
        words += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={agent}"]
        words += ["-device", "virtserialport,chardev=agent,name=agent"]
        words += disk_words("root", GUEST / "root.img", "snapshot=on")
        words += disk_words("payload", self.payload, "readonly=on")
        for name in SETUPS:
            words += ssd_words(name, sparse(self.folder / f"ssd-{name}", SSD_BYTES))
            words += pmem_words(name, sparse(self.folder / f"pmem-{name}", PMEM_BYTES))
            words += ["-chardev", f"file,id=notes-{name},path={self.notes(name)},append=on"]
            words += ["-device", f"virtserialport,chardev=notes-{name},name=notes-{name}"]
        return words

    def boot(self) -> None:
        """Switch on, and wait until the guest answers."""
        ours, its = socket.socketpair()
        self._heard = b""
        with its, (self.folder / "qemu").open("ab") as log:
            self._qemu = subprocess.Popen(
                self._words(its.fileno()), pass_fds=[its.fileno()], stdout=log, stderr=log
            )
        self._agent = ours
        hello = self._answer(BOOT_SECONDS)
        self.kernel = hello["kernel"]
        self.lose_controllers()  # of the boot before
        self.find_controllers()

    def _answer(self, seconds: float) -> dict[str, Any]:
        """The next line that the agent says."""
        assert self._agent is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._heard:
            left = deadline - time.monotonic()
            assert left > 0, f"the guest was silent for {seconds:.0f} s: {self._console()}"
            self._agent.settimeout(left)
            with contextlib.suppress(TimeoutError):
                more = self._agent.recv(1 << 16)
                assert more, f"the guest is gone: {self._console()}"
                self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _console(self) -> str:
        said = [self.folder / name for name in ("qemu", "console")]
        return "\n".join(s.read_text(errors="replace")[-CONSOLE_TAIL:] for s in said if s.exists())

    def _ask(self, **asked: Any) -> None:
        assert self._agent is not None
        self._agent.sendall(json.dumps(asked).encode() + b"\n")

    def run(
        self, *words: str, check: bool = True, seconds: float = RUN_SECONDS, text: str = ""
    ) -> Done:
        """Run a command in the guest, `text` its input; a failure shows what it said."""
        self._ask(words=words, seconds=seconds, input=text)
        done = Done(**self._answer(seconds + RUN_SECONDS))
        assert not check or done.code == 0, f"{words}: {done.code}\n{done.out}{done.err}"
        return done

    def find_controllers(self) -> None:
        """Wait for all. A controller that comes back may have other numbers than before."""
        deadline = time.monotonic() + FIND_SECONDS
        while not set(SETUPS) <= self.controllers.keys() & self.namespaces.keys():
            assert time.monotonic() < deadline, (self.controllers, self.namespaces)
            self.controllers = self._by_serial("/sys/class/nvme/nvme*", "serial")
            self.namespaces = self._by_serial("/sys/block/nvme*n*", "device/serial")

    def lose_controllers(self) -> None:
        """Know none: one was taken away."""
        self.controllers, self.namespaces = {}, {}

    def _by_serial(self, places: str, serial: str) -> dict[str, str]:
        # Each path of a namespace with several paths has a hidden disk: nvme0c1n1.
        script = f"for p in {places}; do echo ${{p##*/}} $(cat $p/{serial}); done"
        lines = (line.split() for line in self.run("bash", "-c", script).out.splitlines())
        named = [words for words in lines if len(words) == 2 and "c" not in words[0]]
        return {number: name for name, number in named}

    def start(self, notes: str, *words: str) -> None:
        """Leave a command running in the guest, its output the notes of this name."""
        self._ask(start=words, notes=f"notes-{notes}")
        self._answer(RUN_SECONDS)

    def cut(self) -> None:
        """Take the power away."""
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
        if self._agent is not None:
            self._agent.close()
        self._qemu = self._agent = None

    def off(self) -> None:
        """Switch off in an orderly way."""
        assert self._qemu is not None
        self._ask(off=True)
        code = self._qemu.wait(BOOT_SECONDS)
        self.cut()
        assert code == 0, self._console()
