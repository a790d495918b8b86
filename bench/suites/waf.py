"""Write amplification: formulas, published figures, ext4 and XFS on it; the simulator's speed."""

import sys

from bench.filesystems import filesystems
from bench.simulator import PAGE_BYTES, formula, run
from bench.table import Row, Target, main, row

SPARES = (0.07, 0.15, 0.28)
BLOCKS = (32, 64, 128, 256, 1024)  # pages per block
LOW_WATER = 2  # blocks that are free while one is collected
GREEDY_OFF, FIFO_OFF, OTHER_OFF = 0.01, 0.01, 0.02
TWO_HEATS = ((0.07, 0.9, 0.1), (0.15, 0.9, 0.1), (0.28, 0.9, 0.1), (0.15, 0.8, 0.2))
# Targets: a core, uniform, greedy, 16 Mi pages, no data.
PROGRAMS_A_SECOND, HOST_A_SECOND, SEPBIT_A_SECOND, BYTES_A_PAGE = 50e6, 8e6, 3e6, 12


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    return [
        *formulas(quick),
        *two_heats(quick),
        *four_jobs(quick),
        *noisy(quick),
        *speed(quick),
        *filesystems(quick),
    ]


def device(pages: int, spare: float, per_block: int, streams: int) -> tuple[list[str], float]:
    """Return the options of a device whose closed blocks alone have the spare, and its alpha."""
    closed = round(pages * (1 + spare) / per_block)
    blocks = closed + LOW_WATER + streams
    options = ["--footprint", str(pages * PAGE_BYTES), "--pages-per-block", str(per_block)]
    return [*options, "--physical-blocks", str(blocks)], closed * per_block / pages


def beside(name: str, measured: float, expected: float, off_max: float) -> list[Row]:
    """Return a WAF and how far it is from its formula."""
    off = abs(measured / expected - 1)
    return [
        row(name, measured, f"formula {expected:.3f}"),
        row("  off by", off, "", Target(off_max)),
    ]


def formulas(quick: bool) -> list[Row]:
    """Greedy, FIFO and d-choices, uniform random overwrites of a full device."""
    rows = []
    for spare in SPARES:
        for per_block in (128,) if quick else BLOCKS:
            pages = max(1 << 17, per_block * 256)
            options, alpha = device(pages, spare, per_block, 1)
            common = [*options, "--writes", str(12 * pages), "--warmup", "0.5"]
            for victim, extra, off_max in (
                ("greedy", {"pages-per-block": per_block}, GREEDY_OFF),
                ("fifo", {}, FIFO_OFF),
                ("d-choices", {"pages-per-block": per_block, "choices": 10}, OTHER_OFF),
            ):
                waf = run("bench", "uniform", "--victim", victim, *common).waf
                name = f"{victim}, spare {spare:.0%}, {per_block} pages a block"
                rows += beside(name, waf, formula(victim, alpha, **extra), off_max)
    return rows


def two_heats(quick: bool) -> list[Row]:
    """A share r of the writes to a share f of the pages: mixed by FIFO, and split."""
    rows = []
    pages = 1 << 17 if quick else 1 << 19
    for spare, writes, space in TWO_HEATS:
        heat = {"hot-writes": writes, "hot-pages": space}
        work = ["--hot", f"{writes}/{space}", "--writes", str(20 * pages), "--warmup", "0.6"]
        options, alpha = device(pages, spare, 256, 1)
        name = f"hotcold {writes}/{space}, spare {spare:.0%}"
        mixed = run("bench", "hotcold", "--victim", "fifo", *options, *work).waf
        rows += beside(
            f"{name}: mixed, fifo", mixed, formula("mixed-fifo", alpha, **heat), OTHER_OFF
        )
        options, alpha = device(pages, spare, 64, 2)
        split = ["--placement", "tags", "--gc", "same", "--victim", "spare-split"]
        waf = run("bench", "hotcold", *split, *options, *work).waf
        best = formula("split-greedy", alpha, **heat, **{"pages-per-block": 64})
        rows += beside(f"{name}: split, ∝ √(r f)", waf, best, OTHER_OFF)
    return rows


def four_jobs(quick: bool) -> list[Row]:
    """Choi's four sequential jobs at 7 % effective spare, with streams and without."""
    pages = 1 << (18 if quick else 20)
    common = [
        "--footprint",
        str(pages * PAGE_BYTES),
        "--physical-blocks",
        str(pages * 107 // 25600),
    ]
    common += ["--writes", str(6 * pages), "--warmup", "0.4"]
    rows, wafs = [], []
    for what, placement, target in (
        ("streams off", "sepgc", None),
        ("streams", "tags", Target(1.02)),
    ):
        done = run("bench", "fio4", "--placement", placement, *common)
        spare = f"effective spare {done.figures['effective_spare']:.1%}"
        rows.append(row(f"fio4, {what}: WAF", done.waf, spare, target))
        wafs.append(done.waf)
    life = wafs[0] / wafs[1]
    rows.append(row("fio4: lifetime with streams ÷ without", life, "source > 2"))
    return rows + four_jobs_timed(pages)


def four_jobs_timed(pages: int) -> list[Row]:
    """The same with the source's random reads, 70 % of all pages, on the clock of TLC NAND."""
    per_block = 768
    common = ["--footprint", str(pages * PAGE_BYTES), "--pages-per-block", str(per_block)]
    common += ["--physical-blocks", str(pages * 107 // (100 * per_block))]
    common += ["--writes", str(6 * pages), "--warmup", "0.4"]
    common += ["--cell", "tlc", "--read-share", "0.7", "--load", "0.1"]
    rows = []
    for what, placement in (("streams off", "sepgc"), ("streams", "tags")):
        time = run("bench", "fio4", "--placement", placement, *common).figures
        name = f"fio4 and reads, virtual time, {what}"
        rows += [row(f"{name}: saturated", time["simulated_mb_per_s"], "MB/s")]
        rows += [row(f"{name}: work-conserving bound", time["bound_mb_per_s"], "MB/s")]
        for kind, key in (("read", "read_latency_us"), ("write", "latency_us")):
            rows += [row(f"{name}: {kind} {q}", time[key][q], "µs") for q in ("p50", "p99", "p999")]
    return rows


def noisy(quick: bool) -> list[Row]:
    """A sequential stream and two random ones: why streams do not always help."""
    pages = 1 << (18 if quick else 20)
    common = ["--footprint", str(pages * PAGE_BYTES), "--writes", str(8 * pages), "--warmup", "0.5"]
    settings = (
        ("one handle, GC frontier", ["--placement", "sepgc"]),
        ("initially isolated", ["--placement", "tags", "--gc", "initially-isolated"]),
        ("persistently isolated", ["--placement", "tags", "--gc", "persistently-isolated"]),
        (
            "persistently isolated, spare split",
            ["--placement", "tags", "--gc", "persistently-isolated", "--victim", "spare-split"],
        ),
    )
    return [
        row(f"noisy neighbours, {what}: WAF", run("bench", "noisy", *options, *common).waf, "")
        for what, options in settings
    ]


def speed(quick: bool) -> list[Row]:
    """How fast is the simulator, its workload and prefill included?"""
    pages = 1 << (22 if quick else 24)
    writes = (1 if quick else 3) * pages
    common = ["--footprint", str(pages * PAGE_BYTES), "--writes", str(writes)]
    rows = []
    for placement, spare, programs_target, host_target in (
        ("nosep", 0.07, PROGRAMS_A_SECOND, None),
        ("nosep", 0.28, None, HOST_A_SECOND),
        ("sepbit", 0.07, None, SEPBIT_A_SECOND),
    ):
        done = run("bench", "uniform", "--op", spare, "--placement", placement, *common)
        name = f"{placement}, {pages >> 20} Mi pages, spare {spare:.0%}"
        rates = (
            ("NAND programs", done.figures["nand_pages"], programs_target),
            ("host page writes", done.figures["host_pages"], host_target),
        )
        for what, count, target in rates:
            at_least = Target(target, at_least=True) if target else None
            rows.append(row(f"{name}: {what}", count / done.cpu_seconds, "/s", at_least))
        bytes_a_page = done.memory_bytes / done.figures["physical_pages"]
        limit = Target(BYTES_A_PAGE) if placement == "nosep" else None
        rows.append(row(f"{name}: memory ÷ physical pages", bytes_a_page, "bytes", limit))
    return rows


if __name__ == "__main__":
    sys.exit(main("waf", __doc__.splitlines()[0], measure))
