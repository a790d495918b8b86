"""The devices that published jobs are replayed on."""

import pytest
from bench.emulated.ssd import RESERVE_BLOCKS
from bench.suites.placement import SOURCES, device_of


# As the sources say: 64 GB in blocks of 48 MiB, 88 % full; 360 blocks of 768 MiB for 256 GiB.
@pytest.mark.parametrize(
    ("workload", "live", "blocks", "block_pages", "gc_mode", "streams"),
    [
        ("fio4", 915_527, 331, 3072, "shared", "8"),
        ("emmc3", 230_630, 1473, 192, "shared", "5"),
        ("vstream64", 262_144, 360, 768, "own", "3"),
    ],
)
def test_a_published_job_has_its_sources_device(
    workload: str, live: int, blocks: int, block_pages: int, gc_mode: str, streams: str
) -> None:
    source = next(one for one in SOURCES if one.workload == workload)
    pages, words = device_of(source)
    said = dict(zip(words[::2], words[1::2], strict=True))
    assert pages == live
    assert said["--block-pages"] == str(block_pages)
    assert said["--gc"] == gc_mode
    assert said["--streams"] == streams
    physical = (1 + float(said["--spare"])) * live / block_pages
    assert physical == pytest.approx(blocks - RESERVE_BLOCKS, abs=0.01)
